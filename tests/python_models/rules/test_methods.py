"""The rules CT108, CT187 to CT189: methods, tensors and parameters of Python models without the meant effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

CLASS = "import triton_python_backend_utils as pb_utils\nclass TritonPythonModel:\n"
EXECUTE = "    def execute(self, requests): return []\n"


def model(source: str, tensors: str = "") -> dict[str, str]:
    return {"model/config.pbtxt": f'backend: "python" {tensors}', "model/1/model.py": f"{CLASS}{source}"}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(f"{EXECUTE}    def initialise(self, args): ...", 1, id="nearly initialize"),
        pytest.param(f"{EXECUTE}    def finalise(self): ...", 1, id="nearly finalize"),
        pytest.param(f"{EXECUTE}    async def initialize(self, args): ...", 1, id="a coroutine"),
        pytest.param(
            f"{EXECUTE}    def initialize(self, args): self.initialise()\n    def initialise(self): ...", 0, id="called"
        ),
        pytest.param(f"{EXECUTE}    def initialize(self, args): ...\n    def initialise(self): ...", 0, id="both"),
        pytest.param(f"{EXECUTE}    def decode(self, text): ...", 0, id="a name of its own"),
        pytest.param(f"{EXECUTE}    def initialized(self): ...", 0, id="the server's name goes on"),
        pytest.param(f"{EXECUTE}    def finalize_all(self): ...", 0, id="the server's name and more"),
        pytest.param(
            f"{EXECUTE}    def finalise(self): ...\n    def __init__(self): print(self)",
            0,
            id="somebody else may call it",
        ),
        pytest.param("    async def execute(self, requests): return []", 0, id="execute may be a coroutine"),
    ],
)
def test_methods_that_never_run(messages: Messages, write: Write, source: str, count: int) -> None:
    found = messages.of(write(model(f"{source}\n"), base={}).check())
    assert found == [("CT187", "model/1/model.py", "")] * count


@pytest.mark.parametrize(
    ("data_type", "read", "count"),
    [("BF16", "as_numpy()", 1), ("BF16", "to_dlpack()", 0), ("FP16", "as_numpy()", 0)],
)
def test_tensors_without_a_type_of_numpy(
    messages: Messages, write: Write, data_type: str, read: str, count: int
) -> None:
    source = "    def execute(self, requests):\n        return [self.answer(each) for each in requests]\n"
    source += f"    def answer(self, each): return pb_utils.get_input_tensor_by_name(each, 'IN').{read}\n"
    tensors = f'input {{ name: "IN" data_type: TYPE_{data_type} dims: 4 }}'
    found = messages.of(write(model(source, tensors), base={}).check())
    assert found == [("CT188", "model/1/model.py", "")] * count


ENSEMBLE = """
platform: "ensemble" max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "first" model_version: -1
    input_map { key: "input__0" value: "IN" } output_map { key: "output__0" value: "scores" } }
  step { model_name: "model" model_version: -1
    input_map { key: "IN" value: "scores" } input_map { key: "RAW" value: "IN" }
    output_map { key: "OUT" value: "OUT" } }
}
"""
TENSORS = """
max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: 4 } input { name: "RAW" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""
FORCED = 'parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value {{ string_value: "{}" }} }}'
ON_GPU = "instance_group { kind: KIND_GPU }"


@pytest.mark.parametrize(
    ("first", "parameter", "body", "count"),
    [
        (ON_GPU, "no", "get(each, 'IN').as_numpy()", 1),
        (ON_GPU, "no", "tensor = get(each, 'IN'); tensor.as_numpy()", 1),
        (ON_GPU, "no", "get(each, 'RAW').as_numpy()", 0),
        (ON_GPU, "no", "tensor = get(each, 'IN'); tensor = None; tensor.as_numpy()", 0),
        (ON_GPU, "no", "tensor = get(each, 'IN'); tensor.is_cpu() and tensor.as_numpy()", 0),
        (ON_GPU, "yes", "get(each, 'IN').as_numpy()", 0),
        ("instance_group { kind: KIND_CPU }", "no", "get(each, 'IN').as_numpy()", 0),
    ],
    ids=["read", "a variable", "of the caller", "set twice", "it asks", "forced", "on the CPU"],
)
def test_an_input_on_the_gpu(
    messages: Messages, write: Write, first: str, parameter: str, body: str, count: int
) -> None:
    body = body.replace("get(", "pb_utils.get_input_tensor_by_name(")
    source = f"    def execute(self, requests):\n        for each in requests: {body}\n        return []\n"
    sides = " ".join(f'{side} {{ name: "{side}__0" data_type: TYPE_FP32 dims: 4 }}' for side in ("input", "output"))
    files = {
        **model(source, f"{TENSORS} {FORCED.format(parameter)}"),
        "ensemble/config.pbtxt": ENSEMBLE,
        "first/config.pbtxt": f'backend: "fil" max_batch_size: 8 {sides} {first}',
    }
    found = messages.of(each for each in write(files, base={}).check() if each.code == "CT108")
    assert found == [("CT108", "model/1/model.py", "")] * count


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("EXECUTION_ENVIRONMENT_PATH", 1),
        ("execution_env_path", 1),
        ("FORCE_CPU_ONLY_INPUT_TENSOR", 1),
        ("threshold", 0),
        ("MODEL_PATH", 0),
    ],
)
def test_parameters(messages: Messages, write: Write, name: str, count: int) -> None:
    parameter = f'parameters {{ key: "{name}" value {{ string_value: "x" }} }}'
    found = messages.of(write(model(EXECUTE, parameter), base={}).check())
    assert found == [("CT189", "model/config.pbtxt", f'parameters["{name}"]')] * count
