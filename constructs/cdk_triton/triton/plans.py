"""What builds the plan of a TensorRT model, and for which shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["PlanRecipe", "Profile", "ProfileShapes"]


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
