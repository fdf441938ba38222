"""The part of a publisher's description that the function for builds needs.

`artifacts.publisher_description` has the whole document, which the command reads from the template of the stack. A
publisher with recipes has the same document among the assets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .documents import Document
from .keys import KeyInputs
from .plan import BuildMachine

__all__ = ["BuildingPublisher", "DeclaredBuilds"]


@dataclass(frozen=True)
class DeclaredBuilds(Document):
    """The jobs of a publisher with recipes, or of one that rehearses.

    Attributes:
        label: the platform, as in `25.09-a10g`.
        program: the version of the build program.
        builder: the machine that builds.
        max_builds: how many builds run at a time.
        recipes: the documents of the declared recipes.
        rehearses: the instance type that serves, if archives with golden requests are rehearsed; None otherwise.
        rehearsal_version: the version of rehearsals in the build program.
    """

    SCHEMA: ClassVar[int] = 2

    label: str
    program: int
    builder: BuildMachine
    max_builds: int
    recipes: tuple[Mapping[str, Any], ...]
    rehearses: str | None = None
    rehearsal_version: int = 1


@dataclass(frozen=True)
class BuildingPublisher(Document):
    """A publisher with recipes, as its stack was deployed.

    Attributes:
        fleet: the name of the `TritonMultiModel` in the store.
        keys: the inputs of keys other than files and recipes.
        builds: its `DeclaredBuilds` as text, because the metadata of a template loses null values.
    """

    fleet: str
    keys: KeyInputs
    builds: str
