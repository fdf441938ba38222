"""The sources that the plan of a TensorRT model is built from.

Only TensorRT on the plan's own GPU can read a plan. Two sources can be looked at before one is built:

* a recipe that builds the plan names the network and the profiles (`PlanRecipe`); a network that another recipe makes
  or that comes from S3 is not there yet, and no rule checks it;
* without a recipe, a version directory may hold `model.onnx` beside (or instead of) `model.plan`. Triton ignores that
  file. It is probably there for the person who builds the plan, and may be of another export. So a difference is only a
  warning. Its profile is not written anywhere. The plan has to take the shapes of the configuration: batches from 1 to
  `max_batch_size`, and the dimensions. Nothing is known about a dimension of -1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from cdk_triton._wording import did_you_mean
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import repository_files
from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.onnx_models.reader.file import OnnxFile, OnnxTensor, onnx_file
from cdk_triton.tensorrt_models.recipe import PlanRecipe, Profile, ProfileShapes, configured_profile, open_shape
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import RepositoryFile
from cdk_triton.triton.schema import ModelConfig

__all__ = [
    "PlanSource",
    "ProfileFault",
    "largest_batch",
    "plan_sources",
    "profile_fault",
    "smallest_batch",
    "unloaded_plan_sources",
]

_NETWORK_NAME = "model.onnx"
_OTHER_SIZE = "export the network with this dimension dynamic, or write the network's size into the profile"


@dataclass(frozen=True)
class PlanSource:
    """The source that a plan is or will be built from.

    Attributes:
        owner: the TensorRT model, with its configuration.
        version: the version's directory, which has the plan.
        network: the ONNX file.
        onnx: the description of its network; None if the file cannot be read.
        profiles: the optimisation profiles; empty if no file and no recipe has them.
        recipe: the recipe that builds the plan. None: no recipe does, and the profiles are those of the configuration.
    """

    owner: ConfiguredModel
    version: PurePosixPath
    network: RepositoryFile
    onnx: OnnxFile | None
    profiles: tuple[Profile, ...]
    recipe: PlanRecipe | None

    @property
    def has_recipe(self) -> bool:
        """Whether a recipe builds the plan."""
        return self.recipe is not None

    @property
    def may_have_plugins(self) -> bool:
        """Whether the build may load plugins of the user's own."""
        is_ours = type(self.recipe).__module__.startswith("cdk_triton.")
        return not is_ours or bool(getattr(self.recipe, "plugins", ()))


@per_check
def plan_sources(context: CheckContext) -> Iterator[PlanSource]:
    """The sources of all plans that the server would load, as far as recipes and files show them."""
    yield from _sources(context, context.loaded_models)


@per_check
def unloaded_plan_sources(context: CheckContext) -> Iterator[PlanSource]:
    """The sources of plans of models that the server would not load, but whose recipes run."""
    loaded = {model.directory for model in context.loaded_models}
    others = [model for model in context.repository.models if model.directory not in loaded]
    yield from (source for source in _sources(context, others) if source.has_recipe)


def _sources(context: CheckContext, models: Iterable[Model]) -> Iterator[PlanSource]:
    files = repository_files(context)
    builds = [recipe for recipe in context.repository.recipes if isinstance(recipe, PlanRecipe)]
    by_directory = {PurePosixPath(path).parent: recipe for recipe in builds for path in recipe.produces}
    for model in models:
        if model.config is None or model.backend_name != "tensorrt":
            continue
        for version in model.served_versions:
            directory = model.directory / str(version)
            recipe = by_directory.get(directory)
            network = files.file(directory / _NETWORK_NAME if recipe is None else PurePosixPath(recipe.network))
            if network is None:
                continue
            read = context.contents(onnx_file, network)
            onnx = read if isinstance(read, OnnxFile) else None
            profiles = _configured(model.config) if recipe is None else tuple(recipe._shape_profiles(model.config))
            yield PlanSource(ConfiguredModel(context, model, model.config), directory, network, onnx, profiles, recipe)


def _configured(config: ModelConfig) -> tuple[Profile, ...]:
    """The shapes that a plan has to take for a configuration; empty if the configuration leaves one open."""
    return () if open_shape(config) else (configured_profile(config),)


class ProfileFault(NamedTuple):
    """Why no TensorRT builds a network for a profile, and what to do."""

    reason: str
    fix: str


def profile_fault(profile: Profile, onnx: OnnxFile) -> ProfileFault | None:
    """The fault of a profile, as far as the network's inputs show it; None if nothing is known against the profile.

    Only TensorRT finds that inputs must have equal lengths, or that an input contains a shape.
    """
    inputs = {tensor.name: tensor for tensor in onnx.inputs}
    for name, shapes in profile.items():
        if name not in inputs:
            left = inputs.keys() - profile.keys()
            meant = did_you_mean(name, left, at_most=1)
            if len(left) == 1 and len(profile.keys() - inputs.keys()) == 1:
                meant = f" (did you mean {next(iter(left))!r}?)"  # the last of both
            reason = f"the network has no input {name!r}{meant}; its inputs: {' and '.join(inputs) or 'none'}"
            return ProfileFault(reason, "name the inputs of the network in the profile")
        fault = _shapes_fault(shapes, inputs[name])
        if fault is not None:
            return ProfileFault(f"for the input {name!r}, {fault.reason}", fault.fix)
    for name, tensor in inputs.items():
        if name not in profile and not all(_is_fixed(size) for size in tensor.shape or ()):
            reason = f"the input {name!r} has dynamic dimensions, and the profile has no shapes for it"
            return ProfileFault(reason, f"add the smallest, the usual and the largest shape of {name!r} to the profile")
    return None


def largest_batch(profiles: Sequence[Profile], onnx: OnnxFile) -> int | None:
    """The largest batch of a plan: in each profile that of the input with the smallest maximum, and the best of these.

    The backend computes it in the same way (GetMaxSupportedBatchSize). An input that a profile does not name has only
    one shape.
    """
    batches = []
    for profile in profiles:
        firsts = [profile[t.name].maximum[:1] if t.name in profile else (t.shape or ())[:1] for t in onnx.inputs]
        sizes = [first[0] for first in firsts if first and isinstance(first[0], int)]
        if sizes:
            batches.append(min(sizes))
    return max(batches, default=None)


def smallest_batch(profiles: Sequence[Profile], inputs: Collection[str]) -> int | None:
    """The smallest batch of a plan: in each profile the largest of the inputs' minimums, and the smallest of these.

    None if a profile names none of the inputs, whose minimums begin with a batch dimension.
    """
    named = [
        [size for name, shapes in profile.items() if name in inputs for size in shapes.minimum[:1]]
        for profile in profiles
    ]
    return min(map(max, named), default=None) if all(named) else None


def _shapes_fault(shapes: ProfileShapes, tensor: OnnxTensor) -> ProfileFault | None:
    lengths = {len(shapes.minimum), len(shapes.optimum), len(shapes.maximum)}
    if len(lengths) > 1:
        reason = "minimum, optimum and maximum have different numbers of dimensions"
        return ProfileFault(reason, f"give the three shapes of {tensor.name!r} the same number of dimensions")
    ranges = zip(shapes.minimum, shapes.optimum, shapes.maximum, strict=True)
    if any(not low <= best <= high for low, best, high in ranges):
        reason = "the profile does not satisfy minimum <= optimum <= maximum"
        return ProfileFault(reason, f"correct the shapes of {tensor.name!r} in the profile")
    if tensor.shape is None:
        return None
    if lengths != {len(tensor.shape)}:
        reason = f"the network has {len(tensor.shape)} dimensions and the profile has {len(shapes.maximum)}"
        return ProfileFault(reason, f"write shapes of {tensor.name!r} with {len(tensor.shape)} dimensions")
    for size, low, high in zip(tensor.shape, shapes.minimum, shapes.maximum, strict=True):
        if _is_fixed(size) and not low == size == high:
            reason = f"the network accepts only the size {size}, and the profile has {low} to {high}"
            return ProfileFault(reason, _OTHER_SIZE)
    return None


def _is_fixed(size: int | str | None) -> bool:
    """Whether a dimension is a number; some exporters write 0 or -1 for any size."""
    return isinstance(size, int) and size > 0
