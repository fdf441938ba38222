"""The rules CT261 to CT269: the states of a model of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT261 to CT269 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.onnx": "weights"}, base={})
    return [str(each) for each in repository.check() if "CT261" <= each.code <= "CT269"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } '
            'initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state: error CT261: the state 'in' "
                "has 2 initial states, and the server would not load 'model': initial_state field for state "
                "input 'in' must contain exactly one or zero element. Found '2' elements; keep one of them",
            ],
            id="CT261",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_INT32 dims: 2 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].data_type: error CT262: the "
                "initial state's type is TYPE_INT32 and the state's TYPE_FP32, and the server would not load "
                "'model': The data type used for 'initial_state' field of state 'in' does not match the "
                "state data type; write data_type: TYPE_FP32",
            ],
            id="CT262 type",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].dims: error CT262: the "
                "initial state's dims are [] and the state's [2], and the server would not load 'model': "
                "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for "
                "state input 'in'. 0 != 1; write as many dims as the state has, the same numbers, and a "
                "number in place of each -1",
            ],
            id="CT262 rank",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: -1 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].dims: error CT262: the "
                "initial state's dims are [-1] and the state's [2], and the server would not load 'model': "
                "'initial_state' field for state input name 'in' contains variable dimensions; write as many "
                "dims as the state has, the same numbers, and a number in place of each -1",
            ],
            id="CT262 variable",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 3 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].dims: error CT262: the "
                "initial state's dims are [3] and the state's [2], and the server would not load 'model': "
                "'initial_state' dim for input name 'in' doesn't match 'state' dim description. 3 != 2; "
                "write as many dims as the state has, the same numbers, and a number in place of each -1",
            ],
            id="CT262 another number",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: -1 initial_state { name: "x" data_type: TYPE_FP32 dims: -2 zero_data: true } } '
            "}",
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].dims: error CT262: the "
                "initial state's dims are [-2] and the state's [-1], and the server would not load 'model': "
                "failed to allocate non-pinned system memory; write as many dims as the state has, the same "
                "numbers, and a number in place of each -1",
            ],
            id="CT262 negative",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 initial_state { data_type: TYPE_FP32 dims: 2 } } }",
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0]: error CT263: the initial "
                "state has no data, and the server would not load 'model': initial_state setting expects "
                "state'in' to have state_data set; write zero_data: true, or data_file with the name of a "
                "file in the model's initial_state directory",
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].name: error CT263: the "
                "initial state has no name, and the server would not load 'model': Field 'name' must be set "
                "when using initial_state for state input 'in'; write any name",
            ],
            id="CT263 both",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } '
            'state { input_name: "in" output_name: "other" data_type: TYPE_FP32 dims: 2 initial_state { '
            'name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } }',
            [
                "model/config.pbtxt sequence_batching.state[1].input_name: error CT264: the input 'in' has a "
                "state with an initial state already, and the server would not load 'model': State input "
                "name 'in' specified more than once; give each state an input of its own",
            ],
            id="CT264",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 } state { input_name: "in" output_name: "other" data_type: TYPE_FP32 dims: 2 '
            "} }",
            [
                "model/config.pbtxt sequence_batching.state[1].input_name: warning CT265: 'in' is the "
                "input_name of an earlier state as well, and the server would ignore one of them: Detected "
                "duplicate 'input_name' in the state configuration; give each state an input and an output "
                "of its own",
            ],
            id="CT265 input",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 } state { input_name: "other" output_name: "out" data_type: TYPE_FP32 dims: 2 '
            "} }",
            [
                "model/config.pbtxt sequence_batching.state[1].output_name: warning CT265: 'out' is the "
                "output_name of an earlier state as well, and the server would ignore one of them: Detected "
                "duplicate 'output_name' in the state configuration; give each state an input and an output "
                "of its own",
            ],
            id="CT265 output",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 data_file: "start" } } '
            "}",
            [
                "model/config.pbtxt sequence_batching.state[0].initial_state[0].data_file: error CT266: "
                "there is no file model/initial_state/start, and the server would not load 'model': failed "
                "to open text file for read; add model/initial_state/start",
            ],
            id="CT266 missing",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { state { } }",
            [
                "model/config.pbtxt sequence_batching.state[0]: error CT267: the state has no input_name and "
                "no output_name and no data_type, and no sequence of 'model' would have a state; write "
                "input_name and output_name and data_type as the model has them",
            ],
            id="CT267",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 use_growable_memory: true } }",
            [
                "model/config.pbtxt sequence_batching.state[0].use_growable_memory: error CT268: the state "
                "'in' may grow, and the server could start no sequence of 'model': Failed to initialize "
                "sequence state: In order to 'use_growable_memory', you must also enable "
                "'use_single_buffer'; write use_same_buffer_for_input_output: true, or leave "
                "use_growable_memory out",
            ],
            id="CT268 two buffers",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 use_same_buffer_for_input_output: true use_growable_memory: true } } "
            "instance_group { kind: KIND_CPU }",
            [
                "model/config.pbtxt sequence_batching.state[0].use_growable_memory: error CT268: the state "
                "'in' may grow, and the server could start no sequence of 'model': Failed to initialize "
                "sequence state: 'use_growable_memory' can only work with KIND_GPU model instances; write "
                "kind: KIND_GPU, or leave use_growable_memory out",
            ],
            id="CT268 on a CPU",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "onnxruntime" ' + config) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 } }",
            id="a state",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 } state { input_name: "other" output_name: "another" data_type: TYPE_FP32 '
            "dims: 2 } }",
            id="two states",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: -1 initial_state { name: "x" data_type: TYPE_FP32 dims: 3 zero_data: true } '
            "} }",
            id="zeros",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: false } '
            "} }",
            id="not even zeros",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 initial_state { name: "x" data_type: TYPE_FP32 zero_data: true } } }',
            id="a scalar",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 use_same_buffer_for_input_output: true use_growable_memory: true } } "
            "instance_group { kind: KIND_GPU }",
            id="growing on a GPU",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "onnxruntime" ' + config) == []


@pytest.mark.parametrize(
    ("content", "findings"),
    [
        (
            "1234567",
            [
                "model/initial_state/start: error CT266: the file has 7 bytes and the initial state 8, and the server "
                "would not load 'model': initial_state setting expects 8 bytes, but the data provided from startonly "
                "has 7 bytes; write 8 bytes, without a header, into it",
            ],
        ),
        ("12345678", []),
        ("123456789", []),
    ],
    ids=["too small", "right", "too large"],
)
def test_the_size_of_an_initial_states_file(write: Write, content: str, findings: list[str]) -> None:
    config = (
        'backend: "onnxruntime" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_FP32 '
        'dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 data_file: "start" } } }'
    )
    repository = write({"model/config.pbtxt": config, "model/initial_state/start": content}, base={})
    assert [str(each) for each in repository.check() if each.code == "CT266"] == findings


def test_a_string_has_any_size(write: Write) -> None:
    config = (
        'backend: "onnxruntime" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_STRING '
        'dims: 2 initial_state { name: "x" data_type: TYPE_STRING dims: 2 data_file: "start" } } }'
    )
    repository = write({"model/config.pbtxt": config, "model/initial_state/start": ""}, base={})
    assert [str(each) for each in repository.check() if each.code == "CT266"] == []


def test_backends_that_write_no_states(write: Write) -> None:
    config = (
        'backend: "python" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_INT8 } }'
    )
    assert found(write, config) == [
        "model/config.pbtxt sequence_batching.state: warning CT269: the backend 'python' writes no states, so "
        "that every "
        "request of a sequence of 'model' would see the first one; keep the state in the model, or run it with another "
        "backend"
    ]
