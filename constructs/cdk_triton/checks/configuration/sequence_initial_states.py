"""CT261 to CT264, and CT266: the initial states of the states of a model of sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdk_triton.checks.configuration.sequence_states import states
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel, Part
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import counts_sizes
from cdk_triton.checks.derived.scheduling import sequence_models, sequence_rule
from cdk_triton.checks.derived.tensors import BYTES_OF
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelSequenceBatching

_SCHEDULER = "src/sequence_batch_scheduler/sequence_batch_scheduler.cc"


@dataclass(frozen=True, slots=True)
class _InitialState(Part["ModelSequenceBatching.InitialState"]):
    """The initial state of a state that has exactly one."""

    state: ModelSequenceBatching.State


@per_check
def _initial_states(context: CheckContext) -> Iterator[_InitialState]:
    for each in sequence_models(context):
        for state in states(each):
            if len(state.message.initial_state) == 1:
                initial = state.message.initial_state[0]
                yield _InitialState(each, state.field("initial_state"), 0, initial, state.message)


_initial_state_rule = rules_about(_initial_states)


@sequence_rule("CT261", Severity.ERROR, "a state has several initial states", source=core(_SCHEDULER, 142, 151))
def several_initial_states(each: ConfiguredModel) -> Iterator[Problem]:
    """A state has several `initial_state` blocks, so the server does not load the model.

    The schema allows several blocks, but the server accepts at most one for each state.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
            initial_state { name: "start" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }
    """
    for state in states(each):
        name, count = state.message.input_name, len(state.message.initial_state)
        if count > 1:
            yield state.unloadable(
                "initial_state",
                f"the state {name!r} has {count} initial states",
                f"initial_state field for state input '{name}' must contain exactly one or zero element. Found "
                f"'{count}' elements",
                "keep one initial state",
            )


@_initial_state_rule(
    "CT262", Severity.ERROR, "an initial state does not fit its state", source=core(_SCHEDULER, 332, 407)
)
def initial_state_does_not_fit(initial: _InitialState) -> Iterator[Problem]:
    """The data type or dims of an initial state do not fit its state, so the server does not load the model.

    Repeat the `data_type` and the `dims` of the state, and write a fixed size in place of each -1.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: -1
            initial_state { name: "zero" data_type: TYPE_FP32 dims: -1 zero_data: true }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: -1
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 1 zero_data: true }
          }
        }
    """
    state, own = initial.state, initial.message
    if own.data_type != state.data_type:
        right = enum_name(state, "data_type")
        yield initial.unloadable(
            "data_type",
            f"the initial state has the type {enum_name(own, 'data_type')}, but the state has {right}",
            f"The data type used for 'initial_state' field of state '{state.input_name}' does not match the state data "
            "type",
            f"write data_type: {right}",
            joint="; ",
        )
    elif (words := _misfit(initial)) is not None:
        yield initial.unloadable(
            "dims",
            f"the initial state has the dims {list(own.dims)}, and the state has {list(state.dims)}",
            words,
            "write the dims of the state, with a fixed size in place of each -1",
            joint="; ",
        )


@_initial_state_rule(
    "CT263", Severity.ERROR, "an initial state has no name or no data", source=core(_SCHEDULER, 346, 352)
)
def initial_state_incomplete(initial: _InitialState) -> Iterator[Problem]:
    """An `initial_state` must have a `name`, and either `zero_data` or `data_file`.

    Otherwise, the server does not load the model. The name may be any string, because the server does not use it.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }
    """
    name = initial.state.input_name
    if not initial.message.name:
        words = f"Field 'name' must be set when using initial_state for state input '{name}'"
        yield initial.unloadable("name", "the initial state has no name", words, "write any name")
    if initial.message.WhichOneof("state_data") is None:
        yield initial.unloadable(
            "",
            "the initial state has no data",
            f"initial_state setting expects state'{name}' to have state_data set",
            "write zero_data: true, or data_file with the name of a file in the model's initial_state directory",
        )


@sequence_rule(
    "CT264", Severity.ERROR, "an input has several states with initial states", source=core(_SCHEDULER, 354, 360)
)
def state_input_twice(each: ConfiguredModel) -> Iterator[Problem]:
    """Two states with initial states have the same `input_name`, so the server does not load the model.

    An input of the model can receive only one state.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
          state {
            input_name: "state_in" output_name: "other_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
          state {
            input_name: "other_in" output_name: "other_out" data_type: TYPE_FP32 dims: 2
            initial_state { name: "zero" data_type: TYPE_FP32 dims: 2 zero_data: true }
          }
        }
    """
    seen: set[str] = set()
    for state in states(each):
        name = state.message.input_name
        if len(state.message.initial_state) == 1 and name:
            if name in seen:
                yield state.unloadable(
                    "input_name",
                    f"two states with an initial state have the input_name {name!r}",
                    f"State input name '{name}' specified more than once",
                    "give each state an input of its own",
                )
            seen.add(name)


@_initial_state_rule(
    "CT266", Severity.ERROR, "the file of an initial state is missing or too small", source=core(_SCHEDULER, 428, 446)
)
def initial_state_file(initial: _InitialState) -> Iterator[Problem]:
    """The `data_file` of an initial state is missing or has too few bytes, so the server does not load the model.

    The server reads the file from the directory `initial_state` of the model. A file for `TYPE_STRING` may have any
    size. If `data_file` names a directory, the server crashes.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_UINT8 dims: 4
            initial_state { name: "start" data_type: TYPE_UINT8 dims: 4 data_file: "start.bin" }
          }
        }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        graph (uint8[4] state_in) => (uint8[4] state_out) { state_out = Identity(state_in) }
        # model/initial_state/start.bin
        12

    Instead:
        # model/initial_state/start.bin
        1234
    """
    own, model = initial.message, initial.owner.model
    is_file = own.WhichOneof("state_data") == "data_file"
    if not is_file or own.data_type != initial.state.data_type or _misfit(initial):
        return
    file = named_file(initial.owner.context, model.directory / "initial_state", own.data_file)
    wanted = math.prod(own.dims) * BYTES_OF.get(enum_name(own, "data_type"), 0)  # 0: strings have any size
    found, fix = f"there is no file {file.spelled}", f"add the file {file.spelled}"
    if file.error:
        words = f"failed to open text file for read {file.spelled}: {file.error}"
        yield initial.unloadable("data_file", found, words, fix)
    elif file.is_directory:
        message = f"{found}, so the server would crash on the directory: std::length_error"
        yield initial.problem("data_file", message, fix)
    elif file.path is not None and file.size is not None and file.size < wanted:
        words = (
            f"initial_state setting expects {wanted} bytes, but the data provided from {own.data_file}only has "
            f"{file.size} bytes"
        )
        found = f"the file has {file.size} bytes and the initial state needs {wanted}"
        fix = f"write {wanted} bytes, without a header, to the file"
        yield Problem(file.path, would_not_load(model, found, words), fix)


def _misfit(initial: _InitialState) -> str | None:
    """The server's message about an initial state's dims; None if they fit the state's."""
    name, dims, wanted = initial.state.input_name, initial.message.dims, initial.state.dims
    if len(dims) != len(wanted):
        return (
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input "
            f"'{name}'. {len(dims)} != {len(wanted)}"
        )
    for dim, right in zip(dims, wanted, strict=True):
        if dim == -1:
            return f"'initial_state' field for state input name '{name}' contains variable dimensions"
        if dim != right != -1:
            return (
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description. {dim} != {right}"
            )
    if all(dim >= 0 for dim in dims):
        return None
    if counts_sizes(initial.owner.context.platform):
        return f"tensor '{name}' contains an invalid dimension [{','.join(map(str, dims))}]"
    return "failed to allocate non-pinned system memory"
