"""CT201 to CT211, and CT219: whether the inputs and outputs of a configuration are complete and make sense."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import completes_batch_size, completes_named_tensors
from cdk_triton.checks.derived.configured import ConfiguredModel, configured, model_rule
from cdk_triton.checks.derived.tensors import ConfiguredTensor, tensor_rule, tensors
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import DataType

_UTILS = "src/model_config_utils.cc"
_MOST_ELEMENTS = 2**63 - 1


@rule("CT201", Severity.ERROR, "an input or output has no name", source=core(_UTILS, 300, 303))
def no_name(context: CheckContext) -> Iterator[Problem]:
    """An `input` or `output` block lacks `name`, so the server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    for tensor in tensors(context):
        if tensor.name:
            continue
        side, owner = tensor.repeated, tensor.owner
        words = f"model {side} must specify 'name' for {owner.said_name}"
        if owner.model.is_ensemble:  # which looks for the tensor among its steps' first
            ends = owner.model.graph.tensors.get("")
            if ends is None:
                continue  # no ensemble_scheduling is reported by CT310
            if not (ends.readers if side == "input" else ends.writers):
                words = f"ensemble {side} '' for ensemble {owner.said_name}' is not used"
        fix = f"write the name that requests and the model use for the {side}"
        yield tensor.unloadable("name", f"{side} {tensor.index} has no name", words, fix)


@tensor_rule("CT202", Severity.ERROR, "an input or output has no data type", source=core(_UTILS, 308, 312))
def no_data_type(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """`data_type` is missing or `TYPE_INVALID`, and neither the backend nor the model adds it.

    The server does not load the model. The backends for TensorRT plans, DALI pipelines and TensorFlow saved models read
    a missing type from the model, and a Python model may set the type in `auto_complete_config`. The ONNX Runtime and
    OpenVINO backends add all inputs if the configuration lists no input, and all outputs if it lists no output. These
    two backends do not add the type of a listed tensor. The PyTorch backend and ensembles never add a type.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    if tensor.message.data_type != DataType.Value("TYPE_INVALID") or completes_named_tensors(tensor.owner):
        return
    words = f"{tensor.said} must specify 'data_type' for {tensor.owner.said_name}"
    if tensor.owner.model.is_ensemble:
        words = "inconsistent data type: TYPE_INVALID is inferred from model"
    yield tensor.unloadable(
        "data_type",
        f"{tensor.text} has no data type, and {_not_added(tensor, 'it')}",
        words,
        "write the type that the model has, for example data_type: TYPE_FP32",
    )


@tensor_rule("CT203", Severity.ERROR, "an input or output has no dims", source=core(_UTILS, 314, 318))
def no_dims(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """`dims` is missing or empty, and neither the backend nor the model adds it.

    The server does not load the model. The backends that add a missing data type (CT202) also add missing dims. Triton
    does not have scalars, so write `dims: 1` for a tensor with one element.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    if tensor.dims or completes_named_tensors(tensor.owner):
        return
    words = f"{tensor.said} must specify 'dims' for {tensor.owner.said_name}"
    if tensor.owner.model.is_ensemble and not tensor.reshape:
        words = "inconsistent shape: [] is inferred from model"
    yield tensor.unloadable(
        "dims",
        f"{tensor.text} has no dims, and {_not_added(tensor, 'them')}",
        words,
        "write the dims without the batch dimension, and -1 for each variable size, for example dims: [ -1, 384 ]",
    )


def _not_added(tensor: ConfiguredTensor, them: str) -> str:
    if tensor.owner.model.is_ensemble:
        return f"an ensemble cannot derive {them}"
    return f"neither the backend nor the model adds {them}"


@tensor_rule("CT204", Severity.ERROR, "a dimension is neither positive nor -1", source=core(_UTILS, 331, 354))
def bad_dimension(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """A dimension in `dims` or `reshape` is 0 or below -1, so the server does not load the model.

    Write the size of the dimension, or -1 if the size varies.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ 0, 4 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 4 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    for field, shape, subject in (
        ("dims", tensor.dims, "dimension"),
        ("reshape.shape", tensor.reshape or (), "reshape dimensions"),
    ):
        if _is_shape(shape):
            continue
        words = (
            f"{tensor.said} {subject} must be integer >= 1, or -1 to indicate a variable-size dimension for "
            f"{tensor.owner.said_name}"
        )
        compared = tensor.dims if tensor.reshape is None else tensor.reshape
        if tensor.owner.model.is_ensemble and shape is compared:
            # The sizes of the steps come first; what has -1 in a step gets past them.
            inferred = f"inconsistent shape: [{','.join(map(str, shape))}] is inferred from model"
            words = f"{inferred}, or, if the step's model has -1 in that place, {words}"
        yield tensor.unloadable(
            field,
            f"{tensor.text} has the {field.partition('.')[0]} {list(shape)}",
            words,
            "write the size of each dimension, or -1 if the size varies",
        )


@tensor_rule(
    "CT205", Severity.ERROR, "a reshape to a scalar in a model without batching", source=core(_UTILS, 320, 330)
)
def scalar_without_batching(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """A model without batching has a tensor with an empty `reshape`, so the server does not load the model.

    An empty `reshape` removes all dimensions. The tensor would be a scalar, which Triton does not support. In a model
    with batching, an empty `reshape` is valid, because the tensor still has the batch dimension.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
    """
    if tensor.reshape is None or tensor.reshape or tensor.owner.config.max_batch_size != 0:
        return
    if completes_batch_size(tensor.owner):
        return
    words = (
        f"{tensor.said} cannot have empty reshape for non-batching model as scalar tensors are not supported for "
        f"{tensor.owner.said_name}"
    )
    if tensor.owner.model.is_ensemble:
        words = "inconsistent shape: [] is inferred from model"
    yield tensor.unloadable(
        "reshape",
        f"{tensor.text} has an empty reshape and max_batch_size is 0",
        words,
        "remove the reshape, or set max_batch_size if the model's first dimension is a batch",
    )


@tensor_rule("CT206", Severity.ERROR, "a reshape does not keep the number of elements", source=core(_UTILS, 356, 418))
def reshape_of_other_size(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """`dims` (the shape for callers) and `reshape` (the shape for the model) have different numbers of elements.

    The server does not load the model. `dims` and `reshape` must have the same number of variable dimensions (-1). The
    fixed dimensions before, between and after the variable ones must have the same products in both. An empty
    `reshape` needs `dims` with a single element.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ -1, 2, 3 ] } }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ -1, 2, 2 ] } }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    shape = tensor.reshape
    if shape is None or not tensor.dims or not _is_shape(tensor.dims) or not _is_shape(shape):
        return  # reported by CT203 and CT204, or completed
    if not shape and tensor.owner.config.max_batch_size == 0:
        return  # reported by CT205
    fixed, reshaped = _products_between_variables(tensor.dims), _products_between_variables(shape)
    if fixed == reshaped or max(*fixed, *reshaped) > _MOST_ELEMENTS:
        return  # the latter is reported by CT247, or counted wrongly by an older server
    variable = len(fixed) > 1 and len(reshaped) > 1 and len(fixed) != len(reshaped)
    what = "number of variable-size dimensions" if variable else "size"
    yield tensor.unloadable(
        "reshape.shape",
        f"{tensor.text} has the dims {list(tensor.dims)} and is reshaped to {list(shape)}",
        f"{tensor.said} has different {what} for dims and reshape for {tensor.owner.said_name}",
        "write a reshape with the same number of elements, and a -1 for each -1 in dims",
    )


def _is_shape(dims: Sequence[int]) -> bool:
    return all(dim >= 1 or dim == -1 for dim in dims)


def _products_between_variables(dims: Sequence[int]) -> list[int]:
    """The number of elements before, between and after the dimensions of variable size."""
    parts: list[list[int]] = [[]]
    for dim in dims:
        if dim == -1:
            parts.append([])
        else:
            parts[-1].append(dim)
    return [math.prod(part) for part in parts]


@model_rule("CT210", Severity.ERROR, "an input is listed twice", source=core("src/infer_request.cc", 1263, 1326))
def input_listed_twice(each: ConfiguredModel) -> Iterator[Problem]:
    """The server loads a model that lists an input twice, but rejects every request to the model.

    The server expects as many inputs as the configuration lists, but a request cannot contain an input twice. Inputs
    with `optional: true` do not count, because the server does not require them.

    Example:
        # model/config.pbtxt
        backend: "python"
        input [ { name: "IN" data_type: TYPE_FP32 dims: 4 }, { name: "IN" data_type: TYPE_FP32 dims: 4 } ]
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input [ { name: "IN" data_type: TYPE_FP32 dims: 4 }, { name: "SCALE" data_type: TYPE_FP32 dims: 4 } ]
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    inputs = each.config.input
    names = [tensor.name for tensor in inputs if tensor.name]
    required, distinct = sum(not tensor.optional for tensor in inputs), len(set(names))
    if required <= distinct or len(names) < len(inputs):
        return
    for name, count in Counter(names).items():
        if count > 1:
            yield each.problem(
                f"input[{len(names) - 1 - names[::-1].index(name)}].name",
                f"the input {name!r} is listed {count} times, so the server would reject every request to "
                f"{each.name!r}: expected {len(names)} inputs but got {distinct} inputs",
                "list the input once, or correct a name",
            )


@rule("CT211", Severity.WARNING, "an output is listed twice", source=core("src/model.cc", 112, 116))
def output_listed_twice(context: CheckContext) -> Iterator[Problem]:
    """The server uses the first of two outputs with the same name, and ignores the second without a message.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output [ { name: "OUT" data_type: TYPE_FP32 dims: 4 }, { name: "OUT" data_type: TYPE_FP32 dims: 2 } ]

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output [ { name: "OUT" data_type: TYPE_FP32 dims: 4 }, { name: "SCORE" data_type: TYPE_FP32 dims: 2 } ]
    """
    for each, name, places, labelled in _outputs_listed_twice(context):
        if len(labelled) <= 1:  # otherwise reported by CT219
            yield each.problem(
                f"output[{places[-1]}].name",
                f"the output {name!r} is listed {len(places)} times, so the server would use only the first entry, but "
                "the model's metadata would list all of them",
                "list the output once, or correct a name",
            )


@rule("CT219", Severity.ERROR, "an output has labels twice", source=core("src/label_provider.cc", 54, 64))
def labels_listed_twice(context: CheckContext) -> Iterator[Problem]:
    """Two outputs have the same name, and both have a `label_filename`, so the server does not load the model.

    This is also true if both outputs name the same file. If only one of the two outputs has labels, the server loads
    the model, and CT211 reports the outputs.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
        output { name: "OUT" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
        # model/labels.txt
        cat
        dog

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
    """
    for each, name, places, labelled in _outputs_listed_twice(context):
        if len(labelled) > 1:
            yield each.unloadable(
                f"output[{labelled[1]}].label_filename",
                f"the output {name!r} is listed {len(places)} times, {len(labelled)} times with labels",
                f"multiple label files for '{name}'",
                "list the output once, with one label_filename, or correct a name",
            )


class _Repeated(NamedTuple):
    """An output that a model lists more than once, with the indexes of its entries and of those with labels."""

    owner: ConfiguredModel
    name: str
    places: list[int]
    labelled: list[int]


@per_check
def _outputs_listed_twice(context: CheckContext) -> Iterator[_Repeated]:
    """CT335 reports the outputs that a step maps, unless the server rejects the model itself for its labels."""
    steps = [step for model in context.loaded_models for step in model.graph.steps]
    mapped = {(step.model_name, key) for step in steps for key in step.output_map}
    for each in configured(context):
        listed: dict[str, list[int]] = {}
        for index, output in enumerate(each.config.output):
            listed.setdefault(output.name, []).append(index)
        for name, places in listed.items():
            labelled = [at for at in places if each.config.output[at].label_filename]
            if name and len(places) > 1 and (len(labelled) > 1 or (each.name, name) not in mapped):
                yield _Repeated(each, name, places, labelled)
