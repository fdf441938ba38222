"""The inputs and outputs of all loaded models, alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import SIDES
from cdk_triton.checks.derived.configured import Part, configured
from cdk_triton.checks.registry import rules_about
from cdk_triton.triton.schema import ModelInput, ModelOutput

__all__ = ["BYTES_OF", "ConfiguredTensor", "named_tensors", "tensor_rule", "tensors"]

BYTES_OF: Mapping[str, int] = {
    **dict.fromkeys(("TYPE_BOOL", "TYPE_UINT8", "TYPE_INT8"), 1),
    **dict.fromkeys(("TYPE_UINT16", "TYPE_INT16", "TYPE_FP16", "TYPE_BF16"), 2),
    **dict.fromkeys(("TYPE_UINT32", "TYPE_INT32", "TYPE_FP32"), 4),
    **dict.fromkeys(("TYPE_UINT64", "TYPE_INT64", "TYPE_FP64"), 8),
}
"""The bytes of an element of each type but `TYPE_STRING`, whose elements have any number."""


@dataclass(frozen=True, slots=True)
class ConfiguredTensor(Part[ModelInput | ModelOutput]):
    """An input or output as a configuration writes it; `repeated` is its side.

    Attributes:
        name: its name, or "".
        dims: its dimensions; () if it does not have any.
        reshape: the dimensions that the model gets, or None if the configuration has no `reshape`.
    """

    name: str
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None

    @property
    def text(self) -> str:
        """The tensor in words."""
        return f"{self.repeated} {self.name!r}"

    @property
    def said(self) -> str:
        """The tensor in the server's words."""
        return f"model {self.repeated} '{self.name}'"


@per_check
def tensors(context: CheckContext) -> Iterator[ConfiguredTensor]:
    """The inputs and outputs of every loaded model, ensembles included."""
    for each in configured(context):
        for side in SIDES:
            listed: Sequence[ModelInput | ModelOutput] = getattr(each.config, side)
            for index, tensor in enumerate(listed):
                reshape = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else None
                yield ConfiguredTensor(each, side, index, tensor, tensor.name, tuple(tensor.dims), reshape)


def named_tensors(context: CheckContext) -> Iterator[ConfiguredTensor]:
    """The tensors that have a name; for the others, only CT201 has a finding."""
    return (tensor for tensor in tensors(context) if tensor.name)


tensor_rule = rules_about(named_tensors)
"""Register a rule about each input and output that has a name; the parameters are those of `rule`."""
