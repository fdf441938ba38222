"""The rules CT250 to CT260: how a model receives sequences of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT250 to CT260 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if "CT250" <= each.code <= "CT260"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }",
            [("CT250", "model/config.pbtxt", "sequence_batching.control_input[0].name")],
            id="CT250",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } } }",
            [("CT251", "model/config.pbtxt", "sequence_batching.control_input[1].name")],
            id="CT251",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } control { kind: CONTROL_SEQUENCE_END "
            "int32_false_true: [ 0, 1 ] } } }",
            [("CT252", "model/config.pbtxt", "sequence_batching.control_input[0].control")],
            id="CT252",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }control_input { name: "B" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }",
            [("CT253", "model/config.pbtxt", "sequence_batching.control_input[1].control[0]")],
            id="CT253",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_READY } } }",
            [("CT254", "model/config.pbtxt", "sequence_batching.control_input[0].control[0]")],
            id="CT254 none",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ] } } }",
            [("CT254", "model/config.pbtxt", "sequence_batching.control_input[0].control[0]")],
            id="CT254 two",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START bool_false_true: true } } }",
            [("CT255", "model/config.pbtxt", "sequence_batching.control_input[0].control[0].bool_false_true")],
            id="CT255",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 int32_false_true: [ 0, 1 ] } } }",
            [("CT256", "model/config.pbtxt", "sequence_batching.control_input[0].control[0].int32_false_true")],
            id="CT256",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID } } }",
            [("CT257", "model/config.pbtxt", "sequence_batching.control_input[0].control[0].data_type")],
            id="CT257 left out",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } } }",
            [("CT257", "model/config.pbtxt", "sequence_batching.control_input[0].control[0].data_type")],
            id="CT257 float",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { preferred_batch_size: 0 } }",
            [("CT258", "model/config.pbtxt", "sequence_batching.oldest.preferred_batch_size[0]")],
            id="CT258 zero",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { preferred_batch_size: 9 } }",
            [("CT258", "model/config.pbtxt", "sequence_batching.oldest.preferred_batch_size[0]")],
            id="CT258 too large",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 1 "
            "minimum_slot_utilization: 50 } }",
            [("CT259", "model/config.pbtxt", "sequence_batching.direct.minimum_slot_utilization")],
            id="CT259",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 1 } }",
            [("CT260", "model/config.pbtxt", "sequence_batching.direct.max_queue_delay_microseconds")],
            id="CT260 delay",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { minimum_slot_utilization: 0.5 } }",
            [("CT260", "model/config.pbtxt", "sequence_batching.direct.minimum_slot_utilization")],
            id="CT260 utilization",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { max_candidate_sequences: -1 } }",
            [("CT260", "model/config.pbtxt", "sequence_batching.oldest.max_candidate_sequences")],
            id="CT260 candidates",
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "python" ' + config)) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "max_batch_size: 8 sequence_batching {  }",
            id="nothing said",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { } }",
            id="direct",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { max_candidate_sequences: 4 preferred_batch_size: 8 } }",
            id="oldest",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } control_input { name: "B" control { '
            'kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } } control_input { name: "C" control '
            '{ kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } } control_input { name: "D" '
            "control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }  }",
            id="all signals",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" } }',
            id="a control input without a signal",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 1 "
            "minimum_slot_utilization: 1 } }",
            id="a delay for a fuller batch",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


def test_the_same_name_in_two_models_is_no_fault(write: Write) -> None:
    signal = 'name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }'
    config = f'backend: "python" sequence_batching {{ control_input {{ {signal} }} }}'
    files = {"config.pbtxt": config, "1/model.py": PYTHON_MODEL}
    repository = write({f"{name}/{file}": text for name in "ab" for file, text in files.items()}, base={})
    findings = repository.check(default_model="a", additional_models=["b"])
    assert [each for each in findings if each.code.startswith("CT25")] == []
