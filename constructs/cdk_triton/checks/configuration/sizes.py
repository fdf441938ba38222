"""CT247 and CT248: sizes that the server cannot count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import Part
from cdk_triton.checks.derived.releases import counts_sizes
from cdk_triton.checks.derived.scheduling import sequence_models
from cdk_triton.checks.derived.tensors import BYTES_OF, ConfiguredTensor, named_tensors
from cdk_triton.checks.derived.warm_ups import WarmUpInput, warm_up_input_rule, warm_up_inputs
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_MOST = 2**63 - 1
_BYTE_SIZE = "byte size for tensor '{}'"
_BITS = 64
_LENGTH_OF_TEXT = 4  # bytes: each element begins with its length


@rule(
    "CT247",
    Severity.ERROR,
    "a tensor is larger than the server can count",
    source=core("src/model_config_utils.h", 323, 390),
    applies=counts_sizes,
)
def too_large(context: CheckContext) -> Iterator[Problem]:
    """An input has more than 2^63 - 1 elements, or a warm-up or an initial state has more than 2^63 - 1 bytes.

    Servers from 26.04 on do not load such a model. Older servers calculate with a wrong number. To count the elements,
    the server multiplies the dimensions before the first -1. For an output, a shape tensor or an input of an ensemble,
    the server counts the elements only if the tensor has a `reshape`.

    Example:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 3037000500, 3037000500 ] zero_data: true } }
        }

    Instead:
        $ cdk-triton validate . --platform 26.05/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 3037, 3037 ] zero_data: true } }
        }
    """
    for part, field, dims, words in (*_tensors(context), *_warm_ups(context), *_initial_states(context)):
        yield part.unloadable(
            field,
            f"the dims are {list(dims)}",
            f"{words} exceeds maximum size of {_MOST}",
            "write the real size of each dimension, without the batch dimension",
        )


_Large = tuple[Part[object] | WarmUpInput, str, Sequence[int], str]
"""The part of a configuration, its field with the dims, the dims, and the server's words."""


def _tensors(context: CheckContext) -> Iterator[_Large]:
    for tensor in named_tensors(context):
        words = "element count for tensor '{}'"
        if tensor.reshape is not None and _count(tensor.dims) > _MOST:
            yield tensor, "dims", tensor.dims, words.format(f"{tensor.name} dims")
        elif tensor.reshape is not None and _count(tensor.reshape) > _MOST:
            yield tensor, "reshape.shape", tensor.reshape, words.format(f"{tensor.name} reshape")
        elif _is_counted(tensor) and _count(tensor.dims) > _MOST:
            yield tensor, "dims", tensor.dims, words.format(tensor.name)


def _is_counted(tensor: ConfiguredTensor) -> bool:
    """Whether the server counts the elements of a tensor although it has no reshape."""
    return tensor.repeated == "input" and not (tensor.owner.model.is_ensemble or tensor.message.is_shape_tensor)


def _warm_ups(context: CheckContext) -> Iterator[_Large]:
    for each in warm_up_inputs(context):
        if _is_large(each.given.dims, enum_name(each.given, "data_type")):
            yield each, "dims", each.given.dims, _BYTE_SIZE.format(each.name)


def _initial_states(context: CheckContext) -> Iterator[_Large]:
    for each in sequence_models(context):
        for state in each.parts("sequence_batching.state", each.config.sequence_batching.state):
            for initial in state.message.initial_state[:1]:
                if _is_large(initial.dims, enum_name(initial, "data_type")):
                    words = _BYTE_SIZE.format(state.message.input_name)
                    yield state, "initial_state[0].dims", initial.dims, words


def _is_large(dims: Sequence[int], data_type: str) -> bool:
    return -1 not in dims and _count(dims) * _element_bytes(data_type) > _MOST


def _element_bytes(data_type: str) -> int:
    return _LENGTH_OF_TEXT if data_type == "TYPE_STRING" else BYTES_OF.get(data_type, 0)


def _count(dims: Sequence[int]) -> int:
    """The elements up to the first dimension of variable size; 0 if a dimension is invalid."""
    fixed = list(dims)[: list(dims).index(-1)] if -1 in dims else list(dims)
    return math.prod(fixed) if all(dim > 0 for dim in fixed) else 0


@warm_up_input_rule(
    "CT248",
    Severity.ERROR,
    "a dimension of a warm-up is negative",
    source=core("src/backend_model_instance.cc", 374, 385),
)
def negative_dimension(each: WarmUpInput) -> Iterator[Problem]:
    """A warm-up gives an input a dimension below -1, which is not a valid size.

    The server does not load the model. CT220 reports a dimension of -1.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: -2 zero_data: true } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 16 zero_data: true } }
        }

    Limits:
        Servers before 26.04 load the model if the product of the dimensions is not negative. For these servers, and if
        no release is given, the rule reports only negative products.
    """
    owner, name, dims = each.warm_up.owner, each.name, each.given.dims
    if -1 in dims or min(dims, default=0) >= 0:
        return
    if counts_sizes(owner.context.platform):
        words = f"tensor '{name}' contains an invalid dimension [{','.join(map(str, dims))}]"
    elif name in {tensor.name for tensor in owner.config.input} and (size := _wrapped(math.prod(dims))) < 0:
        size *= _element_bytes(enum_name(each.given, "data_type"))
        words = (
            f"input byte size mismatch for input '{name}' for model '{owner.name}'. Expected {size}, got "
            f"{size % 2**_BITS}"
        )
    else:
        return
    yield each.unloadable("dims", f"the dims are {list(dims)}", words, "write the sizes that callers send most often")


def _wrapped(number: int) -> int:
    """The number as a signed integer of 64 bits."""
    half = 1 << (_BITS - 1)
    return (number + half) % (2 * half) - half
