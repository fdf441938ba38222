"""The rules CT296 and CT299: misspelt names, and placeholders. Warnings, so the server is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

TENSORS = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'


@pytest.mark.parametrize(
    ("backend", "name", "meant"),
    [
        ("onnxruntime", "execution_mod", "execution_mode"),
        ("onnxruntime", "GPU_MEM_LIMIT", "gpu_mem_limit"),
        ("onnxruntime", "gpu_mem_limit", None),
        ("onnxruntime", "owner", None),
        ("tensorrt", "execution_context_alocation_strategy", "execution_context_allocation_strategy"),
        ("openvino", "num_streams", "NUM_STREAMS"),
        ("openvino", "PERFORMANCE_HINTS", "PERFORMANCE_HINT"),
        ("dali", "num_thread", "num_threads"),
    ],
)
def test_a_misspelt_parameter(messages: Messages, write: Write, backend: str, name: str, meant: str | None) -> None:
    parameter = f'parameters {{ key: "{name}" value {{ string_value: "1" }} }}'
    findings = [
        each
        for each in write({"model/config.pbtxt": f'backend: "{backend}" {TENSORS} {parameter}'}, base={}).check()
        if each.code == "CT296"
    ]
    expected = [] if meant is None else [("CT296", "model/config.pbtxt", f'parameters["{name}"]')]
    assert messages.of(findings) == expected
    assert [each.fix for each in findings] == [f"did you mean {meant!r}?"] * (meant is not None)


@pytest.mark.parametrize(
    ("name", "value", "code", "is_found"),
    [
        ("tokenizer_dir", "${tokenizer_dir}", "", True),
        ("tensorrt_llm_model_name", "${tensorrt_llm_model_name}", "", True),
        ("modelName", "${MODEL}", "", True),
        ("visual_model_path", "${visual_model_path}", 'if path == "${visual_model_path}": path = None', False),
        ("tensorrt_llm_model_name", "${tensorrt_llm_model_name}", "value.startswith('${') or value == ''", False),
        ("tokenizer_dir", "${TOKENIZERS}", "os.path.expandvars(value)", False),
        ("tokenizer_dir", "${tokenizer_dir}", 'path == "${visual_model_path}"', True),
        ("tokenizer_dir", "$$TRITON_MODEL_DIRECTORY/tokenizer", "", False),
        ("skip_special_tokens", "${skip_special_tokens}", "", False),
    ],
)
def test_a_placeholder(messages: Messages, write: Write, name: str, value: str, code: str, is_found: bool) -> None:
    parameter = f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
    repository = write(
        {"model/config.pbtxt": f'backend: "python" {parameter}', "model/1/model.py": f"# {code}"}, base={}
    )
    findings = [each for each in repository.check() if each.code == "CT299"]
    assert messages.of(findings) == [("CT299", "model/config.pbtxt", f'parameters["{name}"].string_value')] * is_found
