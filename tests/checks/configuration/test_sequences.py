"""The rules CT250 to CT260: how a model receives sequences of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT250 to CT260 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [str(each) for each in repository.check() if "CT250" <= each.code <= "CT260"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].name: error CT250: the control input "
                "0 has no name, and the server would not load 'model': sequence batching control tensor must "
                "have a name for model; write the name of the model's input that receives the signal",
            ],
            id="CT250",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[1].name: error CT251: the control input "
                "'A' is declared again, and the server would not load 'model': sequence batching control "
                "tensor 'A' is specified for multiple control kinds for model; give each signal an input of "
                "its own",
            ],
            id="CT251",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } control { kind: CONTROL_SEQUENCE_END "
            "int32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control: warning CT252: the control "
                "input 'A' carries CONTROL_SEQUENCE_END and CONTROL_SEQUENCE_START, and 'model' would only "
                "ever see CONTROL_SEQUENCE_END, which the server writes last; give each signal an input of "
                "its own",
            ],
            id="CT252",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            'CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }control_input { name: "B" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[1].control[0]: error CT253: "
                "CONTROL_SEQUENCE_START is declared again, and the server would not load 'model': sequence "
                "batching specifies multiple CONTROL_SEQUENCE_START tensors for model; keep one of them",
            ],
            id="CT253",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_READY } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0]: error CT254: "
                "CONTROL_SEQUENCE_READY has no pair of values, and the server would not load 'model': "
                "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
                "'bool_false_true' for CONTROL_SEQUENCE_READY for model; write one of them, for example "
                "int32_false_true: [ 0, 1 ]",
            ],
            id="CT254 none",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0]: error CT254: "
                "CONTROL_SEQUENCE_START has 2 pairs of values, and the server would not load 'model': "
                "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
                "'bool_false_true' for CONTROL_SEQUENCE_START for model; write one of them, for example "
                "int32_false_true: [ 0, 1 ]",
            ],
            id="CT254 two",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_START bool_false_true: true } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0].bool_false_true: error "
                "CT255: bool_false_true has 1 value, and the server would not load 'model': sequence "
                "batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START "
                "for model; write the value for false and the value for true",
            ],
            id="CT255",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 int32_false_true: [ 0, 1 ] } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0].int32_false_true: error "
                "CT256: CONTROL_SEQUENCE_CORRID has int32_false_true, and the server would not load 'model': "
                "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
                "'bool_false_true' for CONTROL_SEQUENCE_CORRID for model; leave the values out",
            ],
            id="CT256",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0].data_type: error CT257: "
                "CONTROL_SEQUENCE_CORRID has no data_type, and the server would not load 'model': unexpected "
                "data type for control CONTROL_SEQUENCE_CORRID for model. Allowed data types are "
                "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING; write data_type: "
                "TYPE_UINT64, or TYPE_STRING if clients name their sequences",
            ],
            id="CT257 left out",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { control_input { name: "A" control { kind: '
            "CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } } }",
            [
                "model/config.pbtxt sequence_batching.control_input[0].control[0].data_type: error CT257: "
                "CONTROL_SEQUENCE_CORRID has the type TYPE_FP32, and the server would not load 'model': "
                "unexpected data type for control CONTROL_SEQUENCE_CORRID for model. Allowed data types are "
                "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING; write data_type: "
                "TYPE_UINT64, or TYPE_STRING if clients name their sequences",
            ],
            id="CT257 float",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { preferred_batch_size: 0 } }",
            [
                "model/config.pbtxt sequence_batching.oldest.preferred_batch_size[0]: error CT258: the "
                "preferred batch size is 0 and max_batch_size is 8, and the server would not load 'model': "
                "sequence batching preferred batch size must be positive for model; leave it out, or write a "
                "size from 1 to max_batch_size",
            ],
            id="CT258 zero",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { preferred_batch_size: 9 } }",
            [
                "model/config.pbtxt sequence_batching.oldest.preferred_batch_size[0]: error CT258: the "
                "preferred batch size is 9 and max_batch_size is 8, and the server would not load 'model': "
                "sequence batching preferred batch size must be <= max batch size for model; leave it out, "
                "or write a size from 1 to max_batch_size",
            ],
            id="CT258 too large",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 1 "
            "minimum_slot_utilization: 50 } }",
            [
                "model/config.pbtxt sequence_batching.direct.minimum_slot_utilization: error CT259: "
                "minimum_slot_utilization is 50, and the server would not load 'model': sequence batching "
                "minimum slot utilization must be in range (0.0, 1.0] for model; write a fraction, for "
                "example 0.5",
            ],
            id="CT259",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { max_queue_delay_microseconds: 1 } }",
            [
                "model/config.pbtxt sequence_batching.direct.max_queue_delay_microseconds: warning CT260: "
                "max_queue_delay_microseconds is set and minimum_slot_utilization is not, so that the server "
                "would run every batch of 'model' at once; set minimum_slot_utilization as well, or leave "
                "max_queue_delay_microseconds out",
            ],
            id="CT260 delay",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { direct { minimum_slot_utilization: 0.5 } }",
            [
                "model/config.pbtxt sequence_batching.direct.minimum_slot_utilization: warning CT260: "
                "minimum_slot_utilization is set and max_queue_delay_microseconds is not, so that the server "
                "would run every batch of 'model' at once; set max_queue_delay_microseconds as well, or "
                "leave minimum_slot_utilization out",
            ],
            id="CT260 utilization",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { oldest { max_candidate_sequences: -1 } }",
            [
                "model/config.pbtxt sequence_batching.oldest.max_candidate_sequences: warning CT260: "
                "max_candidate_sequences is -1, and the server would take as many sequences of 'model' at a "
                "time as a batch holds; write the number of sequences that an instance keeps open, or leave "
                "it out",
            ],
            id="CT260 candidates",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "python" ' + config) == findings


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
    assert [str(each) for each in findings if each.code.startswith("CT25")] == []
