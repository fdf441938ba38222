"""The rules CT261 to CT269 and CT292: the states of a model of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT261 to CT269 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.onnx": "weights"}, base={})
    return [each for each in repository.check() if "CT261" <= each.code <= "CT269"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } '
            'initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } }',
            [("CT261", "model/config.pbtxt", "sequence_batching.state[0].initial_state")],
            id="CT261",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_INT32 dims: 2 zero_data: true } } }',
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].data_type")],
            id="CT262 type",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 zero_data: true } } }',
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].dims")],
            id="CT262 rank",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: -1 zero_data: true } } }',
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].dims")],
            id="CT262 variable",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 3 zero_data: true } } }',
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].dims")],
            id="CT262 another number",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: -1 initial_state { name: "x" data_type: TYPE_FP32 dims: -2 zero_data: true } } '
            "}",
            [("CT262", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].dims")],
            id="CT262 negative",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 initial_state { data_type: TYPE_FP32 dims: 2 } } }",
            [
                ("CT263", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0]"),
                ("CT263", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].name"),
            ],
            id="CT263 both",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } '
            'state { input_name: "in" output_name: "other" data_type: TYPE_FP32 dims: 2 initial_state { '
            'name: "x" data_type: TYPE_FP32 dims: 2 zero_data: true } } }',
            [("CT264", "model/config.pbtxt", "sequence_batching.state[1].input_name")],
            id="CT264",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 } state { input_name: "in" output_name: "other" data_type: TYPE_FP32 dims: 2 '
            "} }",
            [("CT265", "model/config.pbtxt", "sequence_batching.state[1].input_name")],
            id="CT265 input",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 } state { input_name: "other" output_name: "out" data_type: TYPE_FP32 dims: 2 '
            "} }",
            [("CT265", "model/config.pbtxt", "sequence_batching.state[1].output_name")],
            id="CT265 output",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            'TYPE_FP32 dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 data_file: "start" } } '
            "}",
            [("CT266", "model/config.pbtxt", "sequence_batching.state[0].initial_state[0].data_file")],
            id="CT266 missing",
        ),
        pytest.param(
            "max_batch_size: 8 sequence_batching { state { } }",
            [("CT267", "model/config.pbtxt", "sequence_batching.state[0]")],
            id="CT267",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 use_growable_memory: true } }",
            [("CT268", "model/config.pbtxt", "sequence_batching.state[0].use_growable_memory")],
            id="CT268 two buffers",
        ),
        pytest.param(
            'max_batch_size: 8 sequence_batching { state { input_name: "in" output_name: "out" data_type: '
            "TYPE_FP32 dims: 2 use_same_buffer_for_input_output: true use_growable_memory: true } } "
            "instance_group { kind: KIND_CPU }",
            [("CT268", "model/config.pbtxt", "sequence_batching.state[0].use_growable_memory")],
            id="CT268 on a CPU",
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "onnxruntime" ' + config)) == findings


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
        ("1234567", [("CT266", "model/initial_state/start", "")]),
        ("12345678", []),
        ("123456789", []),
    ],
    ids=["too small", "right", "too large"],
)
def test_the_size_of_an_initial_states_file(
    messages: Messages, write: Write, content: str, findings: list[Place]
) -> None:
    config = (
        'backend: "onnxruntime" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_FP32 '
        'dims: 2 initial_state { name: "x" data_type: TYPE_FP32 dims: 2 data_file: "start" } } }'
    )
    repository = write({"model/config.pbtxt": config, "model/initial_state/start": content}, base={})
    assert messages.of(each for each in repository.check() if each.code == "CT266") == findings


def test_a_string_has_any_size(write: Write) -> None:
    config = (
        'backend: "onnxruntime" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_STRING '
        'dims: 2 initial_state { name: "x" data_type: TYPE_STRING dims: 2 data_file: "start" } } }'
    )
    repository = write({"model/config.pbtxt": config, "model/initial_state/start": ""}, base={})
    assert [each for each in repository.check() if each.code == "CT266"] == []


def test_backends_that_write_no_states(messages: Messages, write: Write) -> None:
    config = (
        'backend: "python" sequence_batching { state { input_name: "in" output_name: "out" data_type: TYPE_INT8 } }'
    )
    assert messages.of(found(write, config)) == [("CT269", "model/config.pbtxt", "sequence_batching.state")]


def _pair(first: str, second: str, outputs: tuple[str, str], rest: str = "") -> str:
    """Two states of these inputs, whose outputs have these names."""
    names = ((first, outputs[0]), (second, outputs[1]))
    return "".join(
        f'state {{ input_name: "{name}" output_name: "{output}" data_type: TYPE_FP32 dims: 2 {rest} }} '
        for name, output in names
    )


EXCHANGED = [("CT292", "model/config.pbtxt", f"sequence_batching.state[{index}].output_name") for index in (0, 1)]


@pytest.mark.parametrize(
    ("given", "findings"),
    [
        pytest.param(_pair("cache", "cache_len", ("cache_next", "cache_len_next")), EXCHANGED, id="a suffix"),
        pytest.param(_pair("cache", "cache_len", ("next_cache", "next_cache_len")), [], id="a prefix"),
        pytest.param(_pair("cache", "cache_len", ("1", "2")), [], id="numbers"),
        pytest.param(_pair("h", "c", ("1", "2")), EXCHANGED, id="numbers in another order"),
        pytest.param(_pair("h", "c", ("H", "c1")), EXCHANGED, id="capital letters come first"),
        pytest.param(_pair("h", "c", ("1", "2"), "use_same_buffer_for_input_output: true"), [], id="one buffer"),
        pytest.param(_pair("h", "c", ("1", "")), [], id="a name is missing"),
    ],
)
def test_states_whose_outputs_have_another_order(
    messages: Messages, write: Write, given: str, findings: list[Place]
) -> None:
    repository = write(
        {"model/config.pbtxt": f'backend: "onnxruntime" sequence_batching {{ {given} }}'},
        base={"model/1/model.onnx": ""},
    )
    assert messages.of(each for each in repository.check() if each.code == "CT292") == findings


def test_only_the_states_that_move_are_exchanged(messages: Messages, write: Write) -> None:
    one_more = 'state { input_name: "a" output_name: "0" data_type: TYPE_FP32 dims: 2 } '
    config = f'backend: "onnxruntime" sequence_batching {{ {one_more}{_pair("h", "c", ("1", "2"))} }}'
    repository = write({"model/config.pbtxt": config}, base={"model/1/model.onnx": ""})
    places = [field for _, _, field in messages.of(each for each in repository.check() if each.code == "CT292")]
    assert places == [f"sequence_batching.state[{index}].output_name" for index in (1, 2)]
