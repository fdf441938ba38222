"""The rule CT242, and numbers in the place of names that no rule may stumble over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

TENSORS = """
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""


def place(field: str) -> Place:
    return ("CT242", "model/config.pbtxt", field)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("instance_group { kind: 4 }", [place("instance_group[0].kind")], id="an instance group"),
        pytest.param("instance_group { kind: -1 gpus: 0 }", [place("instance_group[0].kind")], id="with a GPU"),
        pytest.param(
            'instance_group { } instance_group { name: "own" kind: 4 }', [place("instance_group[1].kind")], id="a name"
        ),
        pytest.param(
            'batch_input { kind: 6 target_name: "X" data_type: TYPE_FP32 }', [place("batch_input[0].kind")], id="input"
        ),
        pytest.param(
            'batch_output { kind: 1 target_name: "OUT" source_input: "IN" }',
            [place("batch_output[0].kind")],
            id="output",
        ),
        pytest.param("instance_group { kind: 2 }", [], id="a number with a name"),
        pytest.param('input { name: "X" data_type: 15 dims: 1 format: 9 }', [], id="a data type"),
        pytest.param(
            'sequence_batching { control_input { name: "S" control { kind: 9 } control { kind: 10 } } }',
            [],
            id="a control",
        ),
        pytest.param(
            'sequence_batching { control_input { name: "S" control { kind: CONTROL_SEQUENCE_CORRID data_type: 88 } } }',
            [("CT257", "model/config.pbtxt", "sequence_batching.control_input[0].control[0].data_type")],
            id="a correlation id",
        ),
        pytest.param(
            'sequence_batching { state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 1 '
            'initial_state { name: "x" data_type: 66 dims: 1 zero_data: true } } }',
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].data_type")],
            id="an initial state",
        ),
        pytest.param(
            'model_warmup { name: "w" batch_size: 1 '
            'inputs { key: "IN" value { data_type: 55 dims: 4 zero_data: true } } }',
            [("CT222", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].data_type')],
            id="a warm-up",
        ),
    ],
)
def test_numbers_of_enums(messages: Messages, write: Write, text: str, expected: list[Place]) -> None:
    config = f'backend: "python" {TENSORS} {text}'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    findings = [finding for finding in repository.check() if finding.severity == "error"]
    assert messages.of(findings) == expected
