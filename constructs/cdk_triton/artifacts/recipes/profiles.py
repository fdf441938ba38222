"""The optimisation profiles of a TensorRT plan: as a user declares them, and as arguments of trtexec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from cdk_triton._arguments import require_type, several
from cdk_triton.artifacts.recipes.values import literal
from cdk_triton.errors import ConfigurationError
from cdk_triton.tensorrt_models.recipe import Profile, ProfileShapes, dims_in_plan
from cdk_triton.tensorrt_models.sources import largest_batch, profile_fault
from cdk_triton.triton.schema import ModelConfig, ModelInput

if TYPE_CHECKING:
    from cdk_triton.onnx_models.reader.file import OnnxFile

__all__ = ["Shapes", "check_profiles", "declared_profiles", "profile_documents", "shape_flags"]

Shapes = ProfileShapes | tuple[Sequence[int], Sequence[int], Sequence[int]]
"""The min, opt and max shape of an input, batch dimension included: `((1, 128), (16, 128), (128, 128))`."""

_LARGEST = 2**31 - 1


_PROFILES: Final = several(
    lambda value: isinstance(value, Mapping) and len(value) > 0,
    "use a list of at least one profile, such as [{'ids': ((1, 1), (16, 128), (32, 512))}]",
)


def declared_profiles(profiles: Sequence[Mapping[str, Shapes]], recipe: str) -> tuple[Profile, ...]:
    """The profiles that a user wrote, each with its inputs in order.

    Raises:
        ConfigurationError: a value is not a profile.
    """
    require_type(f"profiles of {recipe}", profiles, _PROFILES)
    if not profiles:
        raise ConfigurationError(f"profiles of {recipe} is empty: {_PROFILES.fix}")
    return tuple({name: _shapes(profile[name], name, recipe) for name in sorted(profile)} for profile in profiles)


def _shapes(given: Shapes, name: str, recipe: str) -> ProfileShapes:
    literal(name, f"the name of an input in a profile of {recipe}")
    what = f"the shapes of {name!r} in a profile of {recipe}"
    if "," in name or "'" in name:
        raise ConfigurationError(
            f"a profile of {recipe} has the input {name!r}, but trtexec cannot read a name with a comma or a quotation "
            "mark: rename the input"
        )
    if isinstance(given, ProfileShapes):
        given = (given.minimum, given.optimum, given.maximum)
    if not isinstance(given, tuple | list) or len(given) != 3 or any(not _is_shape(shape) for shape in given):
        raise ConfigurationError(
            f"{what} are {given!r}: give the smallest, the usual and the largest shape, batch included, such as "
            "((1, 1), (16, 128), (32, 512))"
        )
    low, best, high = (tuple(shape) for shape in given)
    if not len(low) == len(best) == len(high):
        raise ConfigurationError(
            f"{what} differ in their number of dimensions: {low}, {best} and {high}; give each shape the same number"
        )
    if any(not a <= b <= c for a, b, c in zip(low, best, high, strict=True)):
        raise ConfigurationError(
            f"{what} are not in ascending order: {low}, {best} and {high}; give the smallest, the usual and the "
            "largest size of each dimension"
        )
    return ProfileShapes(low, best, high)


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, tuple | list)
        and len(shape) > 0
        and all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= _LARGEST for size in shape)
    )


def check_profiles(
    profiles: Sequence[Profile], config: ModelConfig, recipe: str, network: OnnxFile | None = None
) -> None:
    """Reject declared profiles that do not fit the model's configuration.

    If the network is known, a fault that the rule CT702 reports is not reported again.

    Raises:
        ConfigurationError: a profile does not fit the configuration.
    """
    names = {tensor.name for tensor in config.input}
    for index, profile in enumerate(profiles):
        if network is not None and profile_fault(profile, network):
            continue
        what = f"profile {index} of {recipe}"
        missing = sorted(names - profile.keys())
        if missing:
            unknown = sorted(profile.keys() - names)
            close = get_close_matches(missing[0], unknown, n=1)
            instead = f", or rename {close[0]!r} to {missing[0]!r}" if close else ""
            raise ConfigurationError(
                f"{what} does not have the input {missing[0]!r}, but needs the shapes of all inputs in config.pbtxt: "
                f"add the shapes of {missing[0]!r}{instead}"
            )
        for tensor in config.input:
            _check_shapes(profile[tensor.name], tensor, config.max_batch_size, what)
    if network is not None and _is_reported_by_ct702(profiles, config, network):
        return
    batched = [tensor.name for tensor in config.input if not _is_special(tensor)]
    reached = max((min(profile[name].maximum[0] for name in batched) for profile in profiles if batched), default=None)
    if reached is not None and reached < config.max_batch_size:
        raise ConfigurationError(
            f"the largest batch of the profiles of {recipe} is {reached}, so Triton would not load the plan with "
            f"max_batch_size: {config.max_batch_size} of config.pbtxt: raise the largest batch of a profile, or lower "
            "max_batch_size"
        )


def _is_reported_by_ct702(profiles: Sequence[Profile], config: ModelConfig, network: OnnxFile) -> bool:
    reached = largest_batch(profiles, network)
    is_below = reached is not None and reached < config.max_batch_size
    return is_below or any(profile_fault(profile, network) for profile in profiles)


def _is_special(tensor: ModelInput) -> bool:
    """The profile has values of the input, or a length that is not in config.pbtxt."""
    return tensor.is_shape_tensor or tensor.allow_ragged_batch


def _check_shapes(shapes: ProfileShapes, tensor: ModelInput, max_batch_size: int, what: str) -> None:
    if _is_special(tensor):
        return
    dims = dims_in_plan(tensor)
    batch = 1 if max_batch_size > 0 else 0
    if len(shapes.maximum) != len(dims) + batch:
        beside = " and the batch dimension" if batch else ""
        count = len(shapes.maximum)
        raise ConfigurationError(
            f"{what} has {count} {'dimension' if count == 1 else 'dimensions'} for the input {tensor.name!r}, but "
            f"config.pbtxt has dims: {list(dims)}{beside}; write {len(dims) + batch} numbers in each shape"
        )
    for size, low, high in zip(dims, shapes.minimum[batch:], shapes.maximum[batch:], strict=True):
        if size >= 0 and not low <= size <= high:
            raise ConfigurationError(
                f"{what} has sizes from {low} to {high} for a dimension of the input {tensor.name!r}, but config.pbtxt "
                f"has {size} (dims: {list(dims)}): include {size} in the profile"
            )


def shape_flags(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The options of trtexec for the profiles; it splits a name from its shape at the last colon."""
    flags: list[str] = []
    for index, profile in enumerate(profiles):
        if len(profiles) > 1:
            flags.append(f"--profile={index}")
        for option, which in (("--minShapes", "minimum"), ("--optShapes", "optimum"), ("--maxShapes", "maximum")):
            shapes = (f"{name}:{'x'.join(map(str, getattr(profile[name], which)))}" for name in sorted(profile))
            flags.append(f"{option}={','.join(shapes)}")
    return tuple(flags)


def profile_documents(profiles: Sequence[Profile]) -> list[dict[str, dict[str, list[int]]]]:
    """The profiles as JSON values: input → min, opt and max."""
    return [
        {
            name: {"min": list(shapes.minimum), "opt": list(shapes.optimum), "max": list(shapes.maximum)}
            for name, shapes in sorted(profile.items())
        }
        for profile in profiles
    ]
