"""The rules CT212 to CT215: tensors that the server computes for a batch."""

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
    "CT212": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" data_type: TYPE_INT32 source_input: [ "IN", "IN" ] }',
        [("CT212", "model/config.pbtxt", "batch_input[0].source_input")],
    ),
    "CT213": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" source_input: "IN" }',
        [("CT213", "model/config.pbtxt", "batch_input[0].data_type")],
    ),
    "CT214": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: "IN" source_input: "OUT" }',
        [
            ("CT214", "model/config.pbtxt", "batch_output[0].source_input"),
            ("CT214", "model/config.pbtxt", "batch_output[0].target_name"),
        ],
    ),
    "CT215 twice": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: [ "OUT", "OUT" ] source_input: "IN" }',
        [("CT215", "model/config.pbtxt", "batch_output[0].target_name")],
    ),
    "CT215 none": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'source_input: "IN" }',
        [("CT215", "model/config.pbtxt", "batch_output[0].target_name")],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_tensors(messages: Messages, write: Write, text: str, findings: list[Place]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert messages.of(found_in(repository)) == findings


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
