"""The rules CT212 to CT215: tensors that the server computes for a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(201, 220))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[str]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [str(finding) for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[str]]] = {
    "CT212": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" data_type: TYPE_INT32 source_input: [ "IN", "IN" ] }',
        [
            "model/config.pbtxt batch_input[0].source_input: error CT212: batch input 0 has 2 source "
            "inputs, and the server would not load 'model': batch input kind 'BATCH_ITEM_SHAPE' expects "
            "1 source input, got 2; write the one input that it is computed from",
        ],
    ),
    "CT213": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" source_input: "IN" }',
        [
            "model/config.pbtxt batch_input[0].data_type: error CT213: batch input 0 is TYPE_INVALID, "
            "and the server would not load 'model': batch input data type must be TYPE_INT32 or "
            "TYPE_FP32; write data_type: TYPE_INT32 or TYPE_FP32, whichever the model's tensor has",
        ],
    ),
    "CT214": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: "IN" source_input: "OUT" }',
        [
            "model/config.pbtxt batch_output[0].source_input: error CT214: batch output 0 names 'OUT', "
            "and the server would not load 'model': unknown source input name 'OUT'; name an input of "
            "this configuration",
            "model/config.pbtxt batch_output[0].target_name: error CT214: batch output 0 names 'IN', and "
            "the server would not load 'model': unknown target output name 'IN'; name an output of this "
            "configuration",
        ],
    ),
    "CT215 twice": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: [ "OUT", "OUT" ] source_input: "IN" }',
        [
            "model/config.pbtxt batch_output[0].target_name: error CT215: batch output 0 names 'OUT' "
            "twice, and the server would not load 'model': target output name 'OUT' can only be "
            "specified once; name each output that it is for once",
        ],
    ),
    "CT215 none": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'source_input: "IN" }',
        [
            "model/config.pbtxt batch_output[0].target_name: error CT215: batch output 0 names no "
            "target, and the server would end with a segmentation fault (signal 11); name each output "
            "that it is for once",
        ],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_tensors(write: Write, text: str, findings: list[str]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert found_in(repository) == findings


IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 }'
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'backend: "tensorrt" batch_input { data_type: TYPE_INT32 source_input: "IN" }', id="source not known yet"
        ),
    ],
)
def test_what_a_backend_fills_in_is_no_fault(write: Write, text: str) -> None:
    assert found_in(write({"model/config.pbtxt": text, "model/1/file": ""}, base={})) == []


SOUND: Mapping[str, str] = {
    "ragged input": f"""
        max_batch_size: 8 {IN[:-1]} allow_ragged_batch: true }} {OUT}
        batch_input {{ kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "IN" }}
        batch_output {{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT" source_input: "IN" }}
    """,
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_the_server_takes_is_no_fault(write: Write, text: str) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": CODE}, base={})
    assert found_in(repository) == []
