"""CT847 and CT848: whether the names of the inputs of a TorchScript model lead to the arguments that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdk_triton._wording import listed
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.pytorch_models.models import ScriptedModel, is_passed, scripted_rule
from cdk_triton.pytorch_models.naming import Naming, index_in
from cdk_triton.triton.findings import Severity

_SOURCE = "src/pt/model_instance_state.cc"
_DIGITS = re.compile(r"[0-9]{1,9}")


@scripted_rule(
    "CT847",
    Severity.WARNING,
    "a PyTorch model gets an input as another argument than its name says",
    source=backend("pytorch_backend", _SOURCE, 404, 495),
)
def exchanged_input(each: ScriptedModel) -> Iterator[Problem]:
    """An input has the name of an argument of `forward`, but the backend passes it as another argument.

    The backend uses the names of the arguments only if every input has one. Otherwise, it uses the index if every name
    has the form `<name>__<index>`, or else the order of the inputs in the configuration. So one input whose name is not
    that of an argument changes the meaning of all others. The server does not report an error, and the model computes
    with exchanged inputs.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "attention_mask" data_type: TYPE_INT64 dims: 128 }
        input { name: "ids" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "attention_mask" data_type: TYPE_INT64 dims: 128 }
        input { name: "input_ids" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
    """
    arguments = [argument.name for argument in each.forward.arguments]
    if each.takes_dictionary or each.rejected is not None or each.naming is Naming.ARGUMENT:
        return
    for index, (tensor, place) in enumerate(zip(each.config.input, each.places, strict=True)):
        own = tensor.name if each.naming is Naming.ORDER else tensor.name.partition("__")[0]
        if own in arguments and place < len(arguments) and arguments[place] != own:
            yield each.owner.problem(
                f"input[{index}].name",
                f"the backend would pass the input {tensor.name!r} to {each.name!r} as the argument "
                f"{arguments[place]!r} of forward, because it goes by {_reason(each, arguments)}",
                f"name every input after its argument: {listed(arguments)}",
            )


def _reason(each: ScriptedModel, arguments: list[str]) -> str:
    if each.naming is Naming.INDEX:
        return "the indexes in the names"
    strange = next(tensor.name for tensor in each.config.input if tensor.name not in arguments)
    return f"the order of the inputs: {strange!r} is not an argument"


@scripted_rule(
    "CT848",
    Severity.ERROR,
    "the indexes in the names of a PyTorch model's inputs are not those of its arguments",
    source=backend("pytorch_backend", _SOURCE, 1095, 1120),
)
def wrong_index(each: ScriptedModel) -> Iterator[Problem]:
    """Two inputs have the same index, or an index is not below the number of arguments.

    If the names have the form `<name>__<index>`, the index is the place of the argument, from 0 on. An argument without
    an input stays empty, so the server loads the model, but every request fails. An index that is too high makes the
    backend write beyond the end of the list of arguments, which may end the server. Controls and states of sequences
    have indexes, too. The target of a batch input has the index 0 if its name has no index, unless the backend goes by
    the order of the inputs.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__1" data_type: TYPE_FP32 dims: 4 }
        input { name: "INPUT__2" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, x: Tensor, y: Tensor) -> Tensor

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        input { name: "INPUT__1" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule skips models with a batch input that has several targets.
    """
    number = len(each.forward.arguments)
    places = list(_indexes(each))
    if each.takes_dictionary or each.rejected is not None or len(places) != number:
        return  # the last is CT843's
    seen: dict[int, str] = {}
    for field, name, index in places:
        fault = f"but forward has {number} argument{'s'[: number != 1]}" if index >= number else ""
        if index in seen:
            fault = f"like {seen[index]!r}"
        if fault:
            yield each.owner.problem(
                field,
                f"the input {name!r} has the index {index}, {fault}, so every request to {each.name!r} would fail or "
                "end the server",
                f"give each of the inputs its own index from 0 to {number - 1}",
            )
        seen.setdefault(index, name)


def _indexes(each: ScriptedModel) -> Iterator[tuple[str, str, int]]:
    """Every input that the backend passes: field, name, and index of the argument."""
    batching = each.config.sequence_batching
    for index, (tensor, place) in enumerate(zip(each.config.input, each.places, strict=True)):
        yield f"input[{index}].name", tensor.name, place
    yield from _batch_indexes(each)
    names = [
        *((f"control_input[{i}].name", one.name) for i, one in enumerate(batching.control_input) if is_passed(one)),
        *((f"state[{i}].input_name", state.input_name) for i, state in enumerate(batching.state)),
    ]
    for field, name in names:
        own = index_in(name)
        if own is not None:
            yield f"sequence_batching.{field}", name, own


def _batch_indexes(each: ScriptedModel) -> Iterator[tuple[str, str, int]]:
    """The targets of batch inputs, for which `AddInputToMap` looks differently."""
    arguments = [argument.name for argument in each.forward.arguments]
    count = len(each.config.input)
    for index, batch in enumerate(each.config.batch_input):
        for name in batch.target_name:
            if each.naming is Naming.ORDER:
                place = count + index
            elif each.naming is Naming.ARGUMENT:
                place = arguments.index(name) if name in arguments else 0
            else:
                number = _DIGITS.match(name.partition("__")[2] if "__" in name else name[1:])
                place = int(number[0]) if number else 0
            yield f"batch_input[{index}].target_name", name, place
