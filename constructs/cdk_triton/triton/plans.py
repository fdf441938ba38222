"""What the plan of a TensorRT model is built from, and for which shapes: what can be said of a plan beforehand.

A plan itself tells nothing to anybody but its TensorRT on its GPU. Two things can be looked at before one is built:

* a recipe that builds the plan names the network and the profiles (`PlanRecipe`);
* without a recipe, a version directory may hold `model.onnx` beside (or instead of) `model.plan`. Triton ignores that
  file, so it is there for whoever builds the plan. Its profile is not written anywhere; the configuration says what the
  plan has to take: batches from 1 to `max_batch_size`, and the dimensions. Where a dimension is -1 nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from cdk_triton.triton.checks import Check
    from cdk_triton.triton.repository import Model, RepositoryFile
    from cdk_triton.triton.schema import ModelConfig, ModelInput

__all__ = ["NETWORK_NAME", "PlanRecipe", "PlanSource", "Profile", "ProfileShapes", "plan_sources"]

NETWORK_NAME = "model.onnx"


@dataclass(frozen=True)
class ProfileShapes:
    """The shapes of one input in an optimisation profile, batch dimension included."""

    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]


Profile = Mapping[str, ProfileShapes]
"""An optimisation profile: input → its shapes."""


@runtime_checkable
class PlanRecipe(Protocol):
    """A recipe that builds a plan from a network; a Protocol, because recipes live in a higher room."""

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that it will write, relative to the repository, with `/`: `bert/1/model.plan`."""

    @property
    def onnx(self) -> str:
        """The network, relative to the repository, with `/`: `bert/bert.onnx`."""

    @property
    def profiles(self) -> Sequence[Profile]:
        """The optimisation profiles, at least one."""


@dataclass(frozen=True)
class PlanSource:
    """What a plan is or will be built from.

    Attributes:
        model: the TensorRT model.
        network: the ONNX file.
        profiles: the optimisation profiles; empty where nothing says them.
        written: whether somebody wrote the profiles; otherwise they are what the configuration asks for.
    """

    model: Model
    network: RepositoryFile
    profiles: tuple[Profile, ...]
    written: bool


def plan_sources(check: Check) -> Iterator[PlanSource]:
    """The sources of all plans that the server would load, as far as recipes and files tell."""
    builds = [recipe for recipe in check.repository.recipes if isinstance(recipe, PlanRecipe)]
    by_directory = {PurePosixPath(path).parent: recipe for recipe in builds for path in recipe.produces}
    for model in check.loaded_models:
        if model.config is None or model.backend_name != "tensorrt":
            continue
        files = {file.path: file for file in model.files}
        for version in model.served_versions:
            directory = model.directory / str(version)
            recipe = by_directory.get(directory)
            if recipe is not None:
                network = files.get(PurePosixPath(recipe.onnx))
                if network is not None:
                    yield PlanSource(model, network, tuple(recipe.profiles), written=True)
            elif directory / NETWORK_NAME in files:
                profile = configured_profile(model.config)
                yield PlanSource(
                    model, files[directory / NETWORK_NAME], () if profile is None else (profile,), written=False
                )


def configured_profile(config: ModelConfig) -> Profile | None:
    """The shapes that a plan has to take for a configuration; None where the configuration leaves one open."""
    shapes = {tensor.name: _dims(tensor) for tensor in config.input}
    if not shapes or config.batch_input or any(-1 in dims for dims in shapes.values()):
        return None
    if any(tensor.allow_ragged_batch or tensor.is_shape_tensor for tensor in config.input):
        return None
    most = config.max_batch_size
    if most == 0:
        return {name: ProfileShapes(dims, dims, dims) for name, dims in shapes.items()}
    return {name: ProfileShapes((1, *dims), (most, *dims), (most, *dims)) for name, dims in shapes.items()}


def _dims(tensor: ModelInput) -> tuple[int, ...]:
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
