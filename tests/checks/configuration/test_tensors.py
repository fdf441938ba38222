"""The rules CT201 to CT206, CT210, CT211 and CT219: inputs and outputs of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(201, 220))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[Finding]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [finding for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[Place]]] = {
    "CT201": (
        'backend: "python" input { data_type: TYPE_FP32 dims: 0 }',
        [("CT201", "model/config.pbtxt", "input[0].name")],
    ),
    "CT201 in an ensemble without steps": (
        'platform: "ensemble" input { data_type: TYPE_FP32 dims: 4 } output { data_type: TYPE_FP32 dims: 4 }',
        [],
    ),
    "CT202 and CT203": (
        'backend: "python" output { name: "OUT" }',
        [("CT202", "model/config.pbtxt", "output[0].data_type"), ("CT203", "model/config.pbtxt", "output[0].dims")],
    ),
    "CT204 dims": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 0, -2 ] }',
        [("CT204", "model/config.pbtxt", "input[0].dims")],
    ),
    "CT204 reshape": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 1 reshape { shape: [ 1, 0 ] } }',
        [("CT204", "model/config.pbtxt", "output[0].reshape.shape")],
    ),
    "CT205": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }',
        [("CT205", "model/config.pbtxt", "input[0].reshape")],
    ),
    "CT206 size": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ 2, 6 ] reshape { shape: [ 3, 5 ] } }',
        [("CT206", "model/config.pbtxt", "input[0].reshape.shape")],
    ),
    "CT206 variable sizes": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: -1 } }',
        [("CT206", "model/config.pbtxt", "input[0].reshape.shape")],
    ),
    "CT210": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 }input { name: "IN" '
        'data_type: TYPE_FP32 dims: 4 }input { name: "B" data_type: TYPE_FP32 dims: 4 }',
        [("CT210", "model/config.pbtxt", "input[1].name")],
    ),
    "CT211": (
        'backend: "python"  output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [("CT211", "model/config.pbtxt", "output[2].name")],
    ),
    "CT211 with labels of one": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }',
        [("CT211", "model/config.pbtxt", "output[1].name")],
    ),
    "CT219 and nothing of CT211": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 4 label_filename: "a.txt" } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 '
        'dims: 4 label_filename: "b.txt" }',
        [("CT219", "model/config.pbtxt", "output[2].label_filename")],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_tensors(messages: Messages, write: Write, text: str, findings: list[Place]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert messages.of(found_in(repository)) == findings


IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 }'
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'
NAMES = 'input { name: "IN" } output { name: "OUT" }'
SCALAR = 'input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('backend: "tensorrt"' + NAMES, id="TensorRT reads types and shapes"),
        pytest.param('platform: "tensorrt_plan"', id="TensorRT reads names"),
        pytest.param('backend: "dali"' + NAMES, id="DALI reads types and shapes"),
        pytest.param('backend: "onnxruntime"' + OUT, id="ONNX Runtime reads all inputs"),
        pytest.param('backend: "openvino"' + IN, id="OpenVINO reads all outputs"),
        pytest.param('backend: "own"' + NAMES, id="who knows what an own backend reads"),
        pytest.param('backend: "pytorch" runtime: "model.py"' + NAMES, id="PyTorch runs Python code"),
        pytest.param('backend: "pytorch" platform: "torch_aoti"', id="PyTorch runs a compiled model"),
        pytest.param('backend: "tensorrt"' + SCALAR, id="TensorRT reads the batch size"),
        pytest.param('backend: "onnxruntime"' + SCALAR, id="ONNX Runtime reads the batch size with the outputs"),
        pytest.param('backend: "openvino"' + SCALAR + OUT, id="OpenVINO reads the batch size"),
    ],
)
def test_what_a_backend_fills_in_is_no_fault(write: Write, text: str) -> None:
    assert found_in(write({"model/config.pbtxt": text, "model/1/file": ""}, base={})) == []


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "pytorch"])
def test_what_a_backend_does_not_fill_in_is_a_fault(write: Write, backend: str) -> None:
    """ONNX Runtime and OpenVINO complete all inputs or none."""
    repository = write({"model/config.pbtxt": f'backend: "{backend}" {NAMES}', "model/1/file": ""}, base={})
    assert sorted((f.field, f.code) for f in repository.check() if f.code in OWN) == [
        ("input[0].data_type", "CT202"),
        ("input[0].dims", "CT203"),
        ("output[0].data_type", "CT202"),
        ("output[0].dims", "CT203"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(CODE + "    @staticmethod\n    def auto_complete_config(config): ...\n", id="by a function"),
        pytest.param(CODE.replace(":", "(Base):", 1), id="by a base class"),
        pytest.param("def", id="nobody knows"),
        pytest.param("x = 1", id="it is no model"),
    ],
)
def test_a_python_model_may_complete_itself(write: Write, code: str) -> None:
    text = 'backend: "python"' + NAMES + SCALAR.replace("IN", "SCALAR")
    assert found_in(write({"model/config.pbtxt": text, "model/1/model.py": code}, base={})) == []


def test_one_version_of_a_python_model_may_complete_itself(write: Write) -> None:
    text = f'backend: "python" version_policy {{ all {{ }} }} {NAMES}'
    files = {"model/config.pbtxt": text, "model/1/model.py": CODE, "model/2/model.py": "x = 1"}
    assert found_in(write(files, base={})) == []


def test_an_ensemble_quotes_what_is_said_of_it(messages: Messages, write: Write) -> None:
    """Its tensors are compared with those of its steps before they are looked at by themselves."""
    tensors = 'input [ { dims: 4 }, { name: "A" }, { name: "B" data_type: TYPE_FP32 dims: [ 0, 4 ] } ]'
    scalar = 'output { name: "C" data_type: TYPE_FP32 dims: 1 reshape { } }'
    step = 'ensemble_scheduling { step { model_name: "child" model_version: -1 } }'
    repository = write(
        {
            "whole/config.pbtxt": f'platform: "ensemble" {tensors} {scalar} {step}',
            "whole/1/.gitkeep": "",
            "child/config.pbtxt": f'backend: "python" {IN} {OUT}',
            "child/1/model.py": CODE,
        },
        base={},
    )
    assert messages.of(found_in(repository)) == [
        ("CT201", "whole/config.pbtxt", "input[0].name"),
        ("CT202", "whole/config.pbtxt", "input[1].data_type"),
        ("CT203", "whole/config.pbtxt", "input[1].dims"),
        ("CT204", "whole/config.pbtxt", "input[2].dims"),
        ("CT205", "whole/config.pbtxt", "output[0].reshape"),
    ]


SOUND: Mapping[str, str] = {
    "a scalar with batching": f'max_batch_size: 8 {SCALAR} output {{ name: "OUT" data_type: TYPE_FP32 dims: -1 }}',
    "a reshape around variable sizes": """
        input { name: "IN" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }
    """,
    "an optional input twice": IN + IN[:-1] + " optional: true }" + OUT,
    "a name on both sides": IN + OUT.replace("OUT", "IN"),
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_the_server_takes_is_no_fault(write: Write, text: str) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": CODE}, base={})
    assert found_in(repository) == []
