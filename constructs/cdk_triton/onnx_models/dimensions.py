"""The dimensions of outputs that an ONNX network takes over from its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdk_triton.checks.context import CheckContext
from cdk_triton.onnx_models.rules.models import OnnxModelFile, onnx_models, pairs
from cdk_triton.triton.model import Model

__all__ = ["output_dims"]


def output_dims(context: CheckContext, model: Model) -> Mapping[str, tuple[int, ...]]:
    """Output → its dimensions, also those that the configuration fixes only for an input.

    A network gives names to variable dimensions. An output `[batch, tokens, 768]` of an input `[batch, tokens]` has 512
    tokens if the input's `dims` are 512, although the `dims` of the output may be open. The result is empty for a model
    with several versions.
    """
    networks = [each for each in onnx_models(context) if each.owner.model is model]
    return _resolved(networks[0]) if len(networks) == 1 else {}


def _resolved(network: OnnxModelFile) -> dict[str, tuple[int, ...]]:
    fixed: dict[str, int] = {}
    outputs: dict[str, tuple[int, ...]] = {}
    for side, _, tensor, own in pairs(network):  # the inputs first
        if tensor.HasField("reshape") or not 0 <= len(own.shape or ()) - len(tensor.dims) <= 1:
            continue
        names = (own.shape or ())[-len(tensor.dims) :] if tensor.dims else ()
        if side == "input":
            fixed |= {
                name: dim for name, dim in zip(names, tensor.dims, strict=True) if isinstance(name, str) and dim > 0
            }
        else:
            outputs[tensor.name] = tuple(_known(fixed, tensor.dims, names))
    return outputs


def _known(fixed: Mapping[str, int], dims: Sequence[int], names: Sequence[int | str | None]) -> list[int]:
    """The dimensions of an output, from the configuration or else from the network."""
    found = []
    for dim, name in zip(dims, names, strict=True):
        own = name if isinstance(name, int) else fixed.get(name or "", -1)
        found.append(dim if dim > 0 else own)
    return found
