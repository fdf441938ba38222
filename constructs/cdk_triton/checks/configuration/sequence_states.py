"""CT261 to CT269: whether the server can keep the states that a model of sequences declares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import completed_pair, configured
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import counts_sizes
from cdk_triton.checks.derived.tensors import BYTES_OF
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelSequenceBatching

_SCHEDULER = "src/sequence_batch_scheduler/sequence_batch_scheduler.cc"
_TORCH = "src/pt/model_instance_state.cc"

# Triton's backends that never call TRITONBACKEND_StateNew.
_WITHOUT_STATES = ("dali", "openvino", "python")


@rule("CT261", Severity.ERROR, "a state has several initial states", source=core(_SCHEDULER, 142, 151))
def several_initial_states(context: CheckContext) -> Iterator[Problem]:
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
    for model, field, state in _states(context):
        count = len(state.initial_state)
        if count > 1:
            yield Problem(
                model.config_path,
                f"the state {state.input_name!r} has {count} initial states, so the server would not load "
                f"{model.name!r}: initial_state field for state input '{state.input_name}' must contain exactly one or "
                f"zero element. Found '{count}' elements",
                "keep one initial state",
                f"{field}.initial_state",
            )


@rule("CT262", Severity.ERROR, "an initial state does not fit its state", source=core(_SCHEDULER, 332, 407))
def initial_state_does_not_fit(context: CheckContext) -> Iterator[Problem]:
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
    for model, field, state, initial in _initial_states(context):
        if initial.data_type != state.data_type:
            given, right = enum_name(initial, "data_type"), enum_name(state, "data_type")
            yield Problem(
                model.config_path,
                f"the initial state has the type {given}, but the state has {right}; the server would not load "
                f"{model.name!r}: The data type used for 'initial_state' field of state '{state.input_name}' does not "
                "match the state data type",
                f"write data_type: {right}",
                f"{field}.data_type",
            )
        elif (words := _misfit(context, state, initial)) is not None:
            yield Problem(
                model.config_path,
                f"the initial state has the dims {list(initial.dims)}, and the state has {list(state.dims)}; the "
                f"server would not load {model.name!r}: {words}",
                "write the dims of the state, with a fixed size in place of each -1",
                f"{field}.dims",
            )


@rule("CT263", Severity.ERROR, "an initial state has no name or no data", source=core(_SCHEDULER, 346, 352))
def initial_state_incomplete(context: CheckContext) -> Iterator[Problem]:
    """An `initial_state` must have a `name`, and either `zero_data` or `data_file`.

    Otherwise the server does not load the model. The name may be any text, because the server does not use it.

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
    for model, field, state, initial in _initial_states(context):
        name = state.input_name
        if not initial.name:
            yield Problem(
                model.config_path,
                f"the initial state has no name, so the server would not load {model.name!r}: Field 'name' must be "
                f"set when using initial_state for state input '{name}'",
                "write any name",
                f"{field}.name",
            )
        if initial.WhichOneof("state_data") is None:
            yield Problem(
                model.config_path,
                f"the initial state has no data, so the server would not load {model.name!r}: initial_state setting "
                f"expects state'{name}' to have state_data set",
                "write zero_data: true, or data_file with the name of a file in the model's initial_state directory",
                field,
            )


@rule("CT264", Severity.ERROR, "an input has several states with initial states", source=core(_SCHEDULER, 354, 360))
def state_input_twice(context: CheckContext) -> Iterator[Problem]:
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
    seen: set[tuple[str, str]] = set()
    for model, field, state in _states(context):
        name = state.input_name
        if len(state.initial_state) == 1 and name:
            if (model.name, name) in seen:
                yield Problem(
                    model.config_path,
                    f"two states with an initial state have the input_name {name!r}, so the server would not load "
                    f"{model.name!r}: State input name '{name}' specified more than once",
                    "give each state an input of its own",
                    f"{field}.input_name",
                )
            seen.add((model.name, name))


@rule("CT265", Severity.WARNING, "a state of a sequence is ignored", source=core("src/sequence_state.cc", 232, 268))
def duplicate_state(context: CheckContext) -> Iterator[Problem]:
    """If several states share an input or output, the server uses one state, and logs a warning when a sequence starts.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state { input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2 }
          state { input_name: "other_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2 }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state { input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2 }
          state { input_name: "other_in" output_name: "other_out" data_type: TYPE_FP32 dims: 2 }
        }
    """
    seen: set[tuple[str, str, str]] = set()
    refused: set[tuple[str, str]] = set()
    for model, field, state in _states(context):
        twice = (model.name, state.input_name) in refused and len(state.initial_state) == 1  # CT264
        for side, name in (("input_name", state.input_name), ("output_name", state.output_name)):
            if name and (model.name, side, name) in seen and not (twice and side == "input_name"):
                yield Problem(
                    model.config_path,
                    f"an earlier state has the same {side} {name!r}, so the server would ignore one of the two "
                    f"states: Detected duplicate '{side}' in the state configuration",
                    "give each state an input and an output of its own",
                    f"{field}.{side}",
                )
            seen.add((model.name, side, name))
        if len(state.initial_state) == 1:
            refused.add((model.name, state.input_name))


@rule(
    "CT266", Severity.ERROR, "the file of an initial state is missing or too small", source=core(_SCHEDULER, 428, 446)
)
def initial_state_file(context: CheckContext) -> Iterator[Problem]:
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
    for model, field, state, initial in _initial_states(context):
        is_file = initial.WhichOneof("state_data") == "data_file"
        if not is_file or initial.data_type != state.data_type or _misfit(context, state, initial):
            continue
        file = named_file(context, model.directory / "initial_state", initial.data_file)
        wanted = math.prod(initial.dims) * BYTES_OF.get(enum_name(initial, "data_type"), 0)  # 0: strings have any size
        if file.error or file.is_directory:
            said = f"not load {model.name!r}: failed to open text file for read {file.spelled}: {file.error}"
            yield Problem(
                model.config_path,
                f"there is no file {file.spelled}, so the server would "
                f"{said if file.error else 'crash on the directory: std::length_error'}",
                f"add the file {file.spelled}",
                f"{field}.data_file",
            )
        elif file.path is not None and file.size is not None and file.size < wanted:
            yield Problem(
                file.path,
                f"the file has {file.size} bytes and the initial state needs {wanted}, so the server would not load "
                f"{model.name!r}: initial_state setting expects {wanted} bytes, but the data provided from "
                f"{initial.data_file}only has {file.size} bytes",
                f"write {wanted} bytes, without a header, to the file",
            )


@rule(
    "CT267", Severity.ERROR, "a state names no tensor or no type", source=backend("pytorch_backend", _TORCH, 1429, 1448)
)
def incomplete_state(context: CheckContext) -> Iterator[Problem]:
    """A state must have an `input_name`, an `output_name` (the output with the next state) and their `data_type`.

    The server itself does not require these fields. The PyTorch and TensorRT backends do not load the model. With the
    ONNX Runtime backend, the first sequence fails.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching { state { input_name: "state_in" output_name: "state_out" dims: 2 } }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching { state { input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2 } }
    """
    for model, field, state in _states(context):
        missing = [name for name in ("input_name", "output_name", "data_type") if not getattr(state, name)]
        if missing:
            yield Problem(
                model.config_path,
                f"the state has no {' and no '.join(missing)}, so no sequence of {model.name!r} would have a state",
                f"write {' and '.join(missing)} as in the model",
                field,
            )


@rule("CT268", Severity.ERROR, "a growing state is not possible", source=core("src/sequence_state.cc", 139, 157))
def growable_state(context: CheckContext) -> Iterator[Problem]:
    """`use_growable_memory` needs GPU instances (`KIND_GPU`) and `use_same_buffer_for_input_output: true`.

    The server loads the model, but every sequence fails at its start.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: -1
            use_growable_memory: true
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state {
            input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: -1
            use_same_buffer_for_input_output: true use_growable_memory: true
          }
        }
    """
    for model, field, state in _states(context):
        groups = model.config.instance_group if model.config is not None else ()
        elsewhere = any(group.kind in (group.KIND_CPU, group.KIND_MODEL) for group in groups)
        if not state.use_growable_memory or (state.use_same_buffer_for_input_output and not elsewhere):
            continue
        words, fix = "'use_growable_memory' can only work with KIND_GPU model instances", "write kind: KIND_GPU"
        if not state.use_same_buffer_for_input_output:
            words = "In order to 'use_growable_memory', you must also enable 'use_single_buffer'"
            fix = "write use_same_buffer_for_input_output: true"
        yield Problem(
            model.config_path,
            f"the state {state.input_name!r} has use_growable_memory, so the server could not start a sequence of "
            f"{model.name!r}: Failed to initialize sequence state: {words}",
            f"{fix}, or remove use_growable_memory",
            f"{field}.use_growable_memory",
        )


@rule("CT269", Severity.WARNING, "the backend keeps no states", source=backend("pytorch_backend", _TORCH, 490, 520))
def backend_without_states(context: CheckContext) -> Iterator[Problem]:
    """The server passes a state to the model as an input, but the model's backend does not return the next state.

    So every request of a sequence gets the state with which the sequence started. Only Triton's backends for ONNX
    Runtime, PyTorch and TensorRT return states. A Python model must keep the state of each sequence, by correlation id.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          state { input_name: "state_in" output_name: "state_out" data_type: TYPE_FP32 dims: 2 }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
        }

    Limits:
        The rule checks only the DALI, OpenVINO and Python backends.
    """
    for model, config in configured(context):
        if config.sequence_batching.state and (runs := completed_pair(context, model)[1]) in _WITHOUT_STATES:
            yield Problem(
                model.config_path,
                f"the backend {runs!r} does not write states, so every request of a sequence of {model.name!r} would "
                "get the state with which the sequence started",
                "keep the state in the model, or run the model with another backend",
                "sequence_batching.state",
            )


@per_check
def _states(context: CheckContext) -> Iterator[tuple[Model, str, ModelSequenceBatching.State]]:
    """Every state with its model and field."""
    for model, config in configured(context):
        for index, state in enumerate(config.sequence_batching.state):
            yield model, f"sequence_batching.state[{index}]", state


def _initial_states(
    context: CheckContext,
) -> Iterator[tuple[Model, str, ModelSequenceBatching.State, ModelSequenceBatching.InitialState]]:
    """The initial state of every state that has exactly one, with its model and field."""
    for model, field, state in _states(context):
        if len(state.initial_state) == 1:
            yield model, f"{field}.initial_state[0]", state, state.initial_state[0]


def _misfit(
    context: CheckContext, state: ModelSequenceBatching.State, initial: ModelSequenceBatching.InitialState
) -> str | None:
    """The server's message about an initial state's dims; None if they fit the state's."""
    name = state.input_name
    if len(initial.dims) != len(state.dims):
        return (
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input "
            f"'{name}'. {len(initial.dims)} != {len(state.dims)}"
        )
    for dim, wanted in zip(initial.dims, state.dims, strict=True):
        if dim == -1:
            return f"'initial_state' field for state input name '{name}' contains variable dimensions"
        if dim != wanted != -1:
            return (
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description. {dim} != {wanted}"
            )
    if all(dim >= 0 for dim in initial.dims):
        return None
    if counts_sizes(context.platform):
        return f"tensor '{name}' contains an invalid dimension [{','.join(map(str, initial.dims))}]"
    return "failed to allocate non-pinned system memory"
