"""The inputs and outputs of all loaded models, alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import Side
from cdk_triton.checks.derived.configured import configured
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput

__all__ = ["BYTES_OF", "ConfiguredTensor", "named_tensors", "tensors"]

BYTES_OF: Mapping[str, int] = {
    **dict.fromkeys(("TYPE_BOOL", "TYPE_UINT8", "TYPE_INT8"), 1),
    **dict.fromkeys(("TYPE_UINT16", "TYPE_INT16", "TYPE_FP16", "TYPE_BF16"), 2),
    **dict.fromkeys(("TYPE_UINT32", "TYPE_INT32", "TYPE_FP32"), 4),
    **dict.fromkeys(("TYPE_UINT64", "TYPE_INT64", "TYPE_FP64"), 8),
}
"""The bytes of an element of each type but `TYPE_STRING`, whose elements have any number."""


@dataclass(frozen=True)
class ConfiguredTensor:
    """An input or output as a configuration writes it.

    Attributes:
        model: the model.
        config: its configuration.
        side: `input` or `output`.
        index: its position in the file, from 0.
        name: its name, or "".
        data_type: its type, a value of `DataType`.
        dims: its dimensions; () if it does not have any.
        reshape: the dimensions that the model gets, or None if the configuration has no `reshape`.
        message: the message itself.
    """

    model: Model
    config: ModelConfig
    side: Side
    index: int
    name: str
    data_type: int
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None
    message: ModelInput | ModelOutput

    def field(self, name: str) -> str:
        """The path of one of its fields, as findings write it."""
        return f"{self.side}[{self.index}].{name}"


@per_check
def tensors(context: CheckContext) -> Iterator[ConfiguredTensor]:
    """The inputs and outputs of every loaded model, ensembles included."""
    for model, config in configured(context):
        sides: tuple[Side, ...] = ("input", "output")
        for side in sides:
            listed: Sequence[ModelInput | ModelOutput] = config.input if side == "input" else config.output
            for index, tensor in enumerate(listed):
                reshape = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else None
                yield ConfiguredTensor(
                    model, config, side, index, tensor.name, tensor.data_type, tuple(tensor.dims), reshape, tensor
                )


def named_tensors(context: CheckContext) -> Iterator[ConfiguredTensor]:
    """Those that have a name; the others are reported by CT201 alone."""
    return (tensor for tensor in tensors(context) if tensor.name)
