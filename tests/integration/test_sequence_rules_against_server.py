"""The real tritonserver as judge of CT250 to CT269: sequences, their control tensors and their states.

CT292 has no judge here, because no backend of this server keeps states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from judging.scheduling import Files, Refusal, check_loaded, check_refused, errors_of, model, sequences, write

START = "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]"
END = "kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ]"
CORRELATION = "kind: CONTROL_SEQUENCE_CORRID"
INITIAL = 'name: "x" data_type: TYPE_FP32'
VALUES = "'int32_false_true', 'fp32_false_true'"


def control(name: str, *signals: str) -> str:
    return f'control_input {{ name: "{name}" {" ".join(f"control {{ {signal} }}" for signal in signals)} }} '


def state(initial: str = "", rest: str = 'input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 2') -> str:
    return f"state {{ {rest} {f'initial_state {{ {initial} }}' if initial else ''} }} "


REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "control without name": (
        "CT250",
        sequences(control("", START)),
        "sequence batching control tensor must have a name for model",
    ),
    "control declared twice": (
        "CT251",
        sequences(control("A", START) + control("A", END)),
        "sequence batching control tensor 'A' is specified for multiple control kinds for model",
    ),
    "signal declared twice": (
        "CT253",
        sequences(control("A", START) + control("B", START)),
        "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for model",
    ),
    "signal declared twice in one input": (
        "CT253",
        sequences(control("A", START, START)),
        "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for model",
    ),
    "correlation id declared twice": (
        "CT253",
        sequences(
            control("A", CORRELATION + " data_type: TYPE_INT64") + control("B", CORRELATION + " data_type: TYPE_INT64")
        ),
        "sequence batching specifies multiple CONTROL_SEQUENCE_CORRID tensors for model",
    ),
    "signal without values": (
        "CT254",
        sequences(control("A", "kind: CONTROL_SEQUENCE_READY")),
        f"sequence batching must specify either {VALUES} or 'bool_false_true' for CONTROL_SEQUENCE_READY for model",
    ),
    "signal with two pairs": (
        "CT254",
        sequences(control("A", START + " fp32_false_true: [ 0, 1 ]")),
        f"sequence batching specifies more than one from {VALUES} and 'bool_false_true' for CONTROL_SEQUENCE_START",
    ),
    **{
        f"one value of {name}": (
            "CT255",
            sequences(control("A", f"kind: CONTROL_SEQUENCE_END {name}: 1")),
            f"sequence batching control '{name}' must have exactly 2 entries for CONTROL_SEQUENCE_END for model",
        )
        for name in ("int32_false_true", "fp32_false_true", "bool_false_true")
    },
    "correlation id with values": (
        "CT256",
        sequences(control("A", CORRELATION + " data_type: TYPE_INT64 int32_false_true: [ 0, 1 ]")),
        f"sequence batching must not specify either {VALUES} or 'bool_false_true' for CONTROL_SEQUENCE_CORRID",
    ),
    "correlation id without type": (
        "CT257",
        sequences(control("A", CORRELATION)),
        "unexpected data type for control CONTROL_SEQUENCE_CORRID for model. Allowed data types are TYPE_UINT64, "
        "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ),
    "correlation id of a wrong type": (
        "CT257",
        sequences(control("A", CORRELATION + " data_type: TYPE_FP32")),
        "unexpected data type for control CONTROL_SEQUENCE_CORRID for model",
    ),
    "preferred size of oldest": (
        "CT258",
        sequences("oldest { preferred_batch_size: 0 }"),
        "sequence batching preferred batch size must be positive for model",
    ),
    "preferred size of oldest above the maximum": (
        "CT258",
        sequences("oldest { preferred_batch_size: 9 }"),
        "sequence batching preferred batch size must be <= max batch size for model",
    ),
    "slot utilization above 1": (
        "CT259",
        sequences("direct { max_queue_delay_microseconds: 1 minimum_slot_utilization: 1.5 }"),
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for model",
    ),
    "slot utilization below 0": (
        "CT259",
        sequences("direct { max_queue_delay_microseconds: 1 minimum_slot_utilization: -1 }"),
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for model",
    ),
    "several initial states": (
        "CT261",
        sequences(state(INITIAL + f" dims: 2 zero_data: true }} initial_state {{ {INITIAL} dims: 2 zero_data: true")),
        "initial_state field for state input 'a' must contain exactly one or zero element. Found '2' elements",
    ),
    "type of an initial state": (
        "CT262",
        sequences(state('name: "x" data_type: TYPE_INT32 dims: 2 zero_data: true')),
        "The data type used for 'initial_state' field of state 'a' does not match the state data type",
    ),
    "rank of an initial state": (
        "CT262",
        sequences(state(INITIAL + " dims: [ 2, 1 ] zero_data: true")),
        "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'a'. "
        "2 != 1",
    ),
    "variable initial state": (
        "CT262",
        sequences(state(INITIAL + " dims: -1 zero_data: true")),
        "'initial_state' field for state input name 'a' contains variable dimensions",
    ),
    "shape of an initial state": (
        "CT262",
        sequences(state(INITIAL + " dims: 3 zero_data: true")),
        "'initial_state' dim for input name 'a' doesn't match 'state' dim description. 3 != 2",
    ),
    "negative shape of an initial state": (
        "CT262",
        sequences(
            state(
                INITIAL + " dims: -2 zero_data: true", 'input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: -2'
            )
        ),
        "failed to allocate non-pinned system memory",
    ),
    "initial state without name": (
        "CT263",
        sequences(state("data_type: TYPE_FP32 dims: 2 zero_data: true")),
        "Field 'name' must be set when using initial_state for state input 'a'",
    ),
    "initial state without data": (
        "CT263",
        sequences(state(INITIAL + " dims: 2")),
        "initial_state setting expects state'a' to have state_data set",
    ),
    "state input twice": (
        "CT264",
        sequences(
            state(INITIAL + " dims: 2 zero_data: true")
            + state(
                INITIAL + " dims: 2 zero_data: true", 'input_name: "a" output_name: "c" data_type: TYPE_FP32 dims: 2'
            )
        ),
        "State input name 'a' specified more than once",
    ),
    "initial state's file missing": (
        "CT266",
        sequences(state(INITIAL + ' dims: 2 data_file: "f"')),
        "failed to open text file for read",
    ),
    "initial state's file too small": (
        "CT266",
        {**sequences(state(INITIAL + ' dims: 2 data_file: "f"')), "model/initial_state/f": "1234567"},
        "initial_state setting expects 8 bytes, but the data provided from fonly has 7 bytes",
    ),
}


@pytest.mark.parametrize(("code", "files", "words"), REFUSED.values(), ids=REFUSED)
def test_the_server_rejects_it_in_the_words_quoted(
    tmp_path: Path, refusal: Refusal, code: str, files: Files, words: str
) -> None:
    """A server that is right about a state may crash before it speaks, with one start in four or so."""
    attempts = 20 if code >= "CT261" else 1
    check_refused(write(tmp_path / "repository", files), refusal, code, words, attempts=attempts)


LOADED: Mapping[str, Files] = {
    "sequences": sequences(""),
    "oldest without batching": model("sequence_batching { oldest { } }"),
    "CT260: no candidates": sequences("oldest { max_candidate_sequences: -3 }"),
    "more preferred than candidates": sequences("oldest { max_candidate_sequences: 2 preferred_batch_size: 4 }"),
    "all signals": sequences(
        control("A", START) + control("B", END) + control("C", CORRELATION + " data_type: TYPE_STRING")
    ),
    "a control input without signals": sequences(control("A")),
    "CT252: several signals in one input": sequences(control("A", START, END, CORRELATION + " data_type: TYPE_INT32")),
    "full slot utilization": sequences("direct { max_queue_delay_microseconds: 1 minimum_slot_utilization: 1 }"),
    "a state": sequences(state()),
    "an initial state": sequences(state(INITIAL + " dims: 2 zero_data: false")),
    "an initial state of a variable one": sequences(
        state(INITIAL + " dims: 7 zero_data: true", 'input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: -1')
    ),
    "an initial state from a larger file": {
        **sequences(state(INITIAL + ' dims: 2 data_file: "d/f"')),
        "model/initial_state/d/f": "123456789",
    },
    "CT265: a state twice": sequences(state() + state()),
    "decoupled sequences": model("sequence_batching { } model_transaction_policy { decoupled: true }"),
}


@pytest.mark.parametrize("files", LOADED.values(), ids=LOADED)
def test_the_server_loads_what_is_no_error(tmp_path: Path, refusal: Refusal, files: Files) -> None:
    check_loaded(write(tmp_path / "repository", files), refusal)


BEYOND_THE_JUDGE: Mapping[str, tuple[str, Files]] = {
    "fails with the first sequence, or in the backend": (
        "CT267",
        sequences(state(rest='input_name: "a" output_name: "b" dims: 2')),
    ),
    "fails with the first sequence": (
        "CT268",
        sequences(
            state(rest='input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 2 use_growable_memory: true')
        ),
    ),
}


@pytest.mark.parametrize(("code", "files"), BEYOND_THE_JUDGE.values(), ids=BEYOND_THE_JUDGE)
def test_the_server_loads_with_null_backends_what_fails_later(
    tmp_path: Path, refusal: Refusal, code: str, files: Files
) -> None:
    """What loading with null backends does not show; should that change, the rule can be judged above."""
    repository = write(tmp_path / "repository", files)
    assert [found for found, _ in errors_of(repository)] == [code]
    assert refusal(repository) is None
