"""The recipe that builds the plan of a TensorRT model, and the shapes of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cdk_triton.triton.schema import ModelConfig, ModelInput

__all__ = ["PlanRecipe", "Profile", "ProfileShapes", "configured_profile", "dims_in_plan", "open_shape"]


@dataclass(frozen=True)
class ProfileShapes:
    """The shapes of one input in an optimisation profile, batch dimension included.

    Attributes:
        minimum: the smallest that the plan takes.
        optimum: the shape for which the plan is fastest.
        maximum: the largest that the plan takes.
    """

    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]


Profile = Mapping[str, ProfileShapes]
"""An optimisation profile: input → its shapes."""


@runtime_checkable
class PlanRecipe(Protocol):
    """A recipe that builds a plan from a network; a Protocol, because recipes live in a higher package."""

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that it will write, relative to the repository, with `/`: `bert/1/model.plan`."""

    @property
    def network(self) -> str:
        """The ONNX file, relative to the repository, with `/`: `bert/bert.onnx`. It may come from somewhere else."""

    def _shape_profiles(self, config: ModelConfig) -> Sequence[Profile]:
        """The optimisation profiles for a model's configuration; empty if neither of the two has them."""


def open_shape(config: ModelConfig) -> str:
    """The reason why a configuration does not give the shapes of a plan; "" if it does."""
    if not config.input:
        return "config.pbtxt names no input"
    if config.batch_input:
        return "config.pbtxt does not contain the size of its batch_input"
    if config.sequence_batching.control_input or config.sequence_batching.state:
        return "config.pbtxt has controls or states of sequences, which are inputs as well"
    for tensor in config.input:
        if tensor.allow_ragged_batch:
            return f"the input {tensor.name!r} takes ragged batches"
        if tensor.is_shape_tensor:
            return f"the input {tensor.name!r} is a shape tensor, whose values a profile has to bound"
        if -1 in dims_in_plan(tensor):
            return f"the input {tensor.name!r} has a dimension of any size (dims: {list(dims_in_plan(tensor))})"
    return ""


def configured_profile(config: ModelConfig) -> Profile:
    """The shapes that a plan has to accept for a configuration in which every shape is known (`open_shape`).

    Batches go from 1 to `max_batch_size`, for which the plan is fastest. The other dimensions are those of `dims`, or
    of `reshape` if there is one.
    """
    shapes = {tensor.name: dims_in_plan(tensor) for tensor in config.input}
    most = config.max_batch_size
    if most <= 0:
        return {name: ProfileShapes(dims, dims, dims) for name, dims in shapes.items()}
    return {name: ProfileShapes((1, *dims), (most, *dims), (most, *dims)) for name, dims in shapes.items()}


def dims_in_plan(tensor: ModelInput) -> tuple[int, ...]:
    """The dimensions that an input has in its plan, without the batch dimension; -1 for any size."""
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
