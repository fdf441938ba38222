"""CT265, CT267 to CT269 and CT292: whether the server can keep the states that a model of sequences declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.derived.configured import ConfiguredModel, Part, completed_pair
from cdk_triton.checks.derived.scheduling import sequence_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelSequenceBatching

__all__ = ["states"]

_TORCH = "src/pt/model_instance_state.cc"

# Triton's backends that never call TRITONBACKEND_StateNew.
_WITHOUT_STATES = ("dali", "openvino", "python")


def states(each: ConfiguredModel) -> Iterator[Part[ModelSequenceBatching.State]]:
    """The states that a model of sequences declares."""
    return each.parts("sequence_batching.state", each.config.sequence_batching.state)


@sequence_rule(
    "CT265", Severity.WARNING, "a state of a sequence is ignored", source=core("src/sequence_state.cc", 232, 268)
)
def duplicate_state(each: ConfiguredModel) -> Iterator[Problem]:
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
    seen: set[tuple[str, str]] = set()
    with_initial_states: set[str] = set()
    for part in states(each):
        state = part.message
        has_initial_state = len(state.initial_state) == 1
        is_rejected = has_initial_state and state.input_name in with_initial_states  # CT264
        for side, name in (("input_name", state.input_name), ("output_name", state.output_name)):
            if name and (side, name) in seen and not (is_rejected and side == "input_name"):
                yield part.problem(
                    side,
                    f"an earlier state has the same {side} {name!r}, so the server would ignore one of the two "
                    f"states: Detected duplicate '{side}' in the state configuration",
                    "give each state an input and an output of its own",
                )
            seen.add((side, name))
        if has_initial_state:
            with_initial_states.add(state.input_name)


@sequence_rule(
    "CT267", Severity.ERROR, "a state names no tensor or no type", source=backend("pytorch_backend", _TORCH, 1429, 1448)
)
def incomplete_state(each: ConfiguredModel) -> Iterator[Problem]:
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
    for state in states(each):
        missing = [name for name in ("input_name", "output_name", "data_type") if not getattr(state.message, name)]
        if missing:
            yield state.problem(
                "",
                f"the state has no {' and no '.join(missing)}, so no sequence of {each.name!r} would have a state",
                f"write {' and '.join(missing)} as in the model",
            )


@sequence_rule(
    "CT268", Severity.ERROR, "a growing state is not possible", source=core("src/sequence_state.cc", 139, 157)
)
def growable_state(each: ConfiguredModel) -> Iterator[Problem]:
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
    elsewhere = any(group.kind in (group.KIND_CPU, group.KIND_MODEL) for group in each.config.instance_group)
    for part in states(each):
        state = part.message
        if not state.use_growable_memory or (state.use_same_buffer_for_input_output and not elsewhere):
            continue
        words, fix = "'use_growable_memory' can only work with KIND_GPU model instances", "write kind: KIND_GPU"
        if not state.use_same_buffer_for_input_output:
            words = "In order to 'use_growable_memory', you must also enable 'use_single_buffer'"
            fix = "write use_same_buffer_for_input_output: true"
        yield part.problem(
            "use_growable_memory",
            f"the state {state.input_name!r} has use_growable_memory, so the server could not start a sequence of "
            f"{each.name!r}: Failed to initialize sequence state: {words}",
            f"{fix}, or remove use_growable_memory",
        )


@sequence_rule(
    "CT269", Severity.WARNING, "the backend keeps no states", source=backend("pytorch_backend", _TORCH, 490, 520)
)
def backend_without_states(each: ConfiguredModel) -> Iterator[Problem]:
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
    runs = completed_pair(each.context, each.model)[1]
    if each.config.sequence_batching.state and runs in _WITHOUT_STATES:
        yield each.problem(
            "sequence_batching.state",
            f"the backend {runs!r} does not write states, so every request of a sequence of {each.name!r} would get "
            "the state with which the sequence started",
            "keep the state in the model, or run the model with another backend",
        )


@sequence_rule(
    "CT292",
    Severity.WARNING,
    "the server exchanges the states of a sequence",
    source=core("src/sequence_state.cc", 282, 307),
)
def exchanged_states(each: ConfiguredModel) -> Iterator[Problem]:
    """The server finds the input of a state by its place in the alphabet, and not by the configuration.

    After a request, the server sorts the names of all outputs of states, and the names of all inputs of states. It puts
    the first output into the first input, and so on. If the two orders differ, the second request of a sequence gets
    the states in each other's inputs. If their shapes differ, the backend rejects the request; otherwise, the model
    computes with wrong states. The server compares bytes, so `a_b` is before `ab`, and `B` before `a`. A state with
    `use_same_buffer_for_input_output` is not affected, because the input and the output share their memory.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state { input_name: "cache" output_name: "cache_next" data_type: TYPE_FP32 dims: 2 }
          state { input_name: "cache_len" output_name: "cache_len_next" data_type: TYPE_FP32 dims: 2 }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        sequence_batching {
          state { input_name: "cache" output_name: "next_cache" data_type: TYPE_FP32 dims: 2 }
          state { input_name: "cache_len" output_name: "next_cache_len" data_type: TYPE_FP32 dims: 2 }
        }

    Limits:
        The rule skips a model with states that CT265 or CT267 reports, and backends that keep no states (CT269). It has
        not been compared with the real server, because the server of the tests has no backend that keeps states. The
        sources up to 26.06 were read.
    """
    parts = list(states(each))
    inputs = [part.message.input_name.encode() for part in parts]
    outputs = [part.message.output_name.encode() for part in parts]
    is_incomplete = any(b"" in side or len(set(side)) < len(side) for side in (inputs, outputs))
    if is_incomplete or completed_pair(each.context, each.model)[1] in _WITHOUT_STATES:
        return
    filled_by = dict(zip(sorted(outputs), sorted(inputs), strict=True))
    for part, output in zip(parts, outputs, strict=True):
        state, filled = part.message, filled_by[output].decode()
        if filled != state.input_name and not state.use_same_buffer_for_input_output:
            yield part.problem(
                "output_name",
                f"the server would put the output {state.output_name!r} into the input {filled!r}, and not into "
                f"{state.input_name!r}, from the second request of a sequence on, because it pairs the sorted names of "
                "the outputs with the sorted names of the inputs",
                "rename the states in the model so that their inputs and outputs have the same order, for example with "
                "next_ before the name of the input, or write use_same_buffer_for_input_output: true",
            )
