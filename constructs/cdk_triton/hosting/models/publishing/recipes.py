"""The recipes of a publisher, its rehearsals, and their builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.artifacts.recipes.documents import DeclaredRecipe
from cdk_triton.hosting.models.publishing.definition import Builds
from cdk_triton.protocol.plan import BuildMachine

__all__ = ["Recipes"]


class Recipes(NamedTuple):
    """The jobs of a publisher with recipes, or of one that rehearses.

    Attributes:
        recipes: each applies to the repositories that have its model.
        builder: the machine that builds.
        max_builds: how many builds run at a time.
        handler: the ARN of the store's handler, which builds.
        describe: publishes the description among the assets, and returns the arguments of the function that builds.
        rehearses: whether archives with golden requests are rehearsed.
    """

    recipes: tuple[DeclaredRecipe, ...]
    builder: BuildMachine
    max_builds: int
    handler: str
    describe: Callable[[PublisherDescription], Builds]
    rehearses: bool = False
