"""The data of a `Parity`: whether its arrays are the inputs of the model, and fit a profile of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cdk_triton._wording import in_words
from cdk_triton.artifacts.npz import read_npz
from cdk_triton.artifacts.recipes.plan_checks import file_at
from cdk_triton.errors import ConfigurationError
from cdk_triton.tensorrt_models.recipe import dims_in_plan
from cdk_triton.triton.schema import ModelConfig, enum_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from cdk_triton.tensorrt_models.recipe import Profile
    from cdk_triton.triton import ModelRepository

__all__ = ["check_data"]

_NUMPY: Final = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_BF16": "float32",  # numpy has no bfloat16
}
"""Triton's types that a TensorRT plan can have, and those of the arrays."""


def check_data(
    recipe: str, repository: ModelRepository, path: str, config: ModelConfig, profiles: Sequence[Profile]
) -> None:
    """Reject data that the build could not compare with; a file that another recipe makes is not there yet.

    Raises:
        ConfigurationError: the file is not a readable `.npz`, its arrays are not the inputs in `config.pbtxt`, or no
            profile accepts their shapes.
    """
    file = file_at(repository, path)
    if file is None:
        return
    arrays = read_npz(file.source, f"the parity's data {path} of {recipe}")
    types = {tensor.name: enum_name(tensor, "data_type") for tensor in config.input}
    if types and arrays.keys() != types.keys():
        raise ConfigurationError(
            f"the parity's data {path} of {recipe} has {in_words(map(repr, sorted(arrays)), 'and')}, but config.pbtxt "
            f"has {in_words(map(repr, sorted(types)), 'and')}: write an array for each input"
        )
    for name, kind in types.items():
        if arrays[name].dtype != _NUMPY.get(kind):
            raise ConfigurationError(
                f"the array {name!r} in the parity's data {path} of {recipe} is {arrays[name].dtype}, but config.pbtxt "
                f"has {kind}: convert it with array.astype({_NUMPY.get(kind, 'float32')!r})"
            )
    for tensor in config.input:
        dims = ((-1,) if config.max_batch_size > 0 else ()) + dims_in_plan(tensor)
        shape = arrays[tensor.name].shape
        if not tensor.allow_ragged_batch and not _matches(shape, dims):
            raise ConfigurationError(
                f"the array {tensor.name!r} in the parity's data {path} of {recipe} has the shape {list(shape)}, but "
                f"config.pbtxt has {list(dims)}, batch dimension included and -1 for any size: write such an array"
            )
    if profiles and not any(_fits(arrays, profile) for profile in profiles):
        shapes = ", ".join(f"{name!r} {list(array.shape)}" for name, array in sorted(arrays.items()))
        raise ConfigurationError(
            f"no profile of {recipe} accepts the shapes in the parity's data {path} ({shapes}): write arrays within a "
            "profile, batch dimension included"
        )


def _matches(shape: Sequence[int], dims: Sequence[int]) -> bool:
    return len(shape) == len(dims) and all(size in (-1, found) for size, found in zip(dims, shape, strict=True))


def _fits(arrays: Mapping[str, npt.NDArray[Any]], profile: Profile) -> bool:
    return all(
        len(shapes.minimum) == arrays[name].ndim
        and all(
            low <= size <= high
            for low, size, high in zip(shapes.minimum, arrays[name].shape, shapes.maximum, strict=True)
        )
        for name, shapes in profile.items()
        if name in arrays
    )
