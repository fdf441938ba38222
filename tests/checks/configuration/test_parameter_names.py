"""The rule CT296: parameters with misspelt names. Warnings, so the server is not asked."""

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
