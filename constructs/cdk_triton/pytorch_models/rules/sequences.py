"""CT849, CT850 and CT853: the sequences of TorchScript models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.pytorch_models.models import is_passed, scripted_models, torchscript_rule
from cdk_triton.pytorch_models.naming import index_in
from cdk_triton.pytorch_models.types import TORCH_TYPES
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_SOURCE = "src/pt/model_instance_state.cc"
_STATES_SINCE = "23.07"  # branches of pytorch_backend


@torchscript_rule(
    "CT849",
    Severity.ERROR,
    "a control of a PyTorch model's sequences has a name without an index",
    source=backend("pytorch_backend", _SOURCE, 1264, 1308),
)
def control_without_index(each: ConfiguredModel) -> Iterator[Problem]:
    """The name of a control input must have the form `<name>__<index>`, where the index is the place of the argument.

    The server does not load the model otherwise. The first `__` in a name counts, and only digits may follow it.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { control_input {
          name: "START"
          control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }
        } }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { control_input {
          name: "START__1"
          control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }
        } }
    """
    suggested = _indexed_inputs(each)
    for index, control in enumerate(each.config.sequence_batching.control_input):
        if control.name and is_passed(control) and index_in(control.name) is None:
            yield each.unloadable(
                f"sequence_batching.control_input[{index}].name",
                f"the sequence control {control.name!r} has no index of an argument",
                f"input '{control.name}' does not follow <name>__<index> naming convention.",
                f"write {suggested[control.name]}, with the place of the argument of forward, from 0 on",
            )


@torchscript_rule(
    "CT850",
    Severity.ERROR,
    "a PyTorch model of sequences has a tensor without an index in its name",
    source=backend("pytorch_backend", _SOURCE, 497, 549),
)
def sequence_without_index(each: ConfiguredModel) -> Iterator[Problem]:
    """With `sequence_batching`, all inputs, outputs and states must be named `<name>__<index>`.

    The backend checks this from 23.07 on, also for a model without states. So the names of the arguments of `forward`,
    which are valid for every other TorchScript model, are not valid here, and the server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "scores" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { }

    Limits:
        The rule checks the inputs only if the signature of `forward` is known, because a model that takes a dictionary
        may have inputs with any names.
    """
    platform, config = each.context.platform, each.config
    if not config.HasField("sequence_batching") or (platform is not None and is_older(platform, _STATES_SINCE)):
        return
    states = list(enumerate(config.sequence_batching.state))
    checked = [(f"output[{i}].name", "output", tensor.name) for i, tensor in enumerate(config.output)]
    checked += [(f"sequence_batching.state[{i}].output_name", "state", state.output_name) for i, state in states]
    if _arguments(each.context).get(each.name):
        checked += [(f"input[{i}].name", "input", tensor.name) for i, tensor in enumerate(config.input)]
        checked += [(f"sequence_batching.state[{i}].input_name", "state", state.input_name) for i, state in states]
    inputs = _indexed_inputs(each)
    outputs = _indexed([*(tensor.name for tensor in config.output), *(state.output_name for _, state in states)])
    for field, kind, name in checked:
        if not name or index_in(name) is not None:  # CT201 and CT267 report the first
            continue
        words = "not all inputs and outputs follow"
        if kind == "state":
            words = f"state '{name}' does not follow"
        is_result = "output" in field
        yield each.unloadable(
            field,
            f"the {kind} {name!r} has no index",
            f"PyTorch model '{each.said_name}' is using sequence batching with state but {words} the <name>__<index> "
            "naming convention.",
            f"write a name such as {(outputs if is_result else inputs)[name]}, with the place of the "
            f"{'result' if is_result else 'argument of forward'}, from 0 on",
        )


@torchscript_rule(
    "CT853",
    Severity.ERROR,
    "a correlation ID or a state has a type that PyTorch does not have",
    source=backend("pytorch_backend", _SOURCE, 1648, 1657),
)
def unsupported_type(each: ConfiguredModel) -> Iterator[Problem]:
    """The control `CONTROL_SEQUENCE_CORRID` of a PyTorch model must have a signed type of integers, such as INT64.

    PyTorch has no unsigned integers of 16 bits or more, and the backend does not pass correlation IDs as text, so the
    server does not load the model. The states have the types of other tensors (CT217).

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { control_input {
          name: "ID__1"
          control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }
        } }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        max_batch_size: 8
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        sequence_batching { control_input {
          name: "ID__1"
          control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 }
        } }
    """
    batching, platform = each.config.sequence_batching, each.context.platform
    for index, control in enumerate(batching.control_input):
        for place, one in enumerate(control.control):
            kind, data_type = enum_name(one, "kind"), enum_name(one, "data_type")
            if kind == "CONTROL_SEQUENCE_CORRID" and control.name and not _is_supported(data_type):
                yield each.unloadable(
                    f"sequence_batching.control_input[{index}].control[{place}].data_type",
                    f"the correlation ID {control.name!r} is {data_type}",
                    f"input '{control.name}' type '{data_type}' is not supported by PyTorch.",
                    "write data_type: TYPE_INT64",
                )
    if platform is not None and is_older(platform, _STATES_SINCE):
        return  # CT269 is about a backend that keeps no states
    for index, state in enumerate(batching.state):
        data_type = enum_name(state, "data_type")
        if not _is_supported(data_type) and data_type != "TYPE_STRING":
            yield each.unloadable(
                f"sequence_batching.state[{index}].data_type",
                f"the state {state.input_name!r} is {data_type}",
                f"unsupported datatype {data_type} for input state '{state.input_name}' for model '{each.said_name}'",
                "write a type that PyTorch has, such as TYPE_FP32 or TYPE_INT64",
            )


def _is_supported(data_type: str) -> bool:
    """Whether PyTorch has the type; a missing one is reported by other rules."""
    return data_type == "TYPE_INVALID" or data_type.removeprefix("TYPE_") in TORCH_TYPES


def _indexed_inputs(each: ConfiguredModel) -> dict[str, str]:
    """A name with an index for each input of `forward`: the inputs, then the controls, then the states."""
    batching = each.config.sequence_batching
    names = [
        *(tensor.name for tensor in each.config.input),
        *(control.name for control in batching.control_input if is_passed(control)),
        *(state.input_name for state in batching.state),
    ]
    return _indexed(names, _arguments(each.context).get(each.name, ()))


def _indexed(names: Sequence[str], arguments: Sequence[str] = ()) -> dict[str, str]:
    """A name with an index for each name: the index in it, that of the argument of this name, or the next free one."""
    places = {name: index_in(name) for name in names}
    for name in names:
        place = arguments.index(_stem(name)) if _stem(name) in arguments else None
        if places[name] is None and place not in places.values():
            places[name] = place
    free = (index for index in count() if index not in places.values())
    return {name: f"{_stem(name)}__{next(free) if place is None else place}" for name, place in places.items()}


def _stem(name: str) -> str:
    return name.partition("__")[0]


@per_check
def _arguments(context: CheckContext) -> dict[str, tuple[str, ...]]:
    """The arguments of each model as far as they are known; none if one of its files takes a dictionary."""
    found: dict[str, tuple[str, ...]] = {}
    for each in scripted_models(context):
        names = () if each.takes_dictionary else tuple(argument.name for argument in each.forward.arguments)
        found[each.name] = names if found.get(each.name, names) else ()
    return found
