"""The inputs and outputs of a configuration, as they are compared with a pipeline: at synth, and in the build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput

__all__ = ["configured_tensors"]

_SPLIT: Final = "split_along_outer_axis"


def configured_tensors(config: ModelConfig) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The inputs and outputs, for `signature_faults` of `_dali_signature`."""
    is_split = _SPLIT in config.parameters  # such an output has other dimensions than the pipeline's
    inputs = [_tensor(each, list(each.dims)) for each in config.input]
    return inputs, [_tensor(each, [] if is_split else list(each.dims)) for each in config.output]


def _tensor(tensor: ModelInput | ModelOutput, dims: list[int]) -> dict[str, Any]:
    return {"name": tensor.name, "data_type": enum_name(tensor, "data_type"), "dims": dims}
