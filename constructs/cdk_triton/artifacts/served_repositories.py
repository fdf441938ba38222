"""The repositories that a model of an app serves, as the cloud assembly describes them.

`cdk-triton validate --app` reads the description, because it does not run the app. It is in the metadata of the
construct, which the CDK writes into the cloud assembly beside the templates, so it is never deployed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from cdk_triton.artifacts.build_plan import JOB_START_MINUTES
from cdk_triton.artifacts.publisher_description import parse_serving, serving_document
from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment, Mode, ModelRepository
from cdk_triton.triton.rehearsal import Rehearsal, rehearsal_in, rehearsal_table
from cdk_triton.triton.repository import PromisedFiles, Recipe
from cdk_triton.triton.repository_settings import read_settings

if TYPE_CHECKING:
    from cdk_triton.artifacts.prepare import Prepared

__all__ = [
    "SERVED_METADATA",
    "GpuMinutes",
    "ServedRepository",
    "WorkMinutes",
    "gpu_minutes",
    "served_document",
    "served_repositories",
]

SERVED_METADATA: Final = "cdk-triton:Repositories"
"""The type of the metadata of a `TritonModel` or `TritonMultiModel`."""


class WorkMinutes(NamedTuple):
    """Roughly how long a job works that builds and rehearses the repositories of a construct, in minutes.

    Attributes:
        builds: for all builds; 0 without recipes.
        rehearsals: for all rehearsals; 0 without golden requests.
    """

    builds: float
    rehearsals: float


class GpuMinutes(NamedTuple):
    """Roughly how long the jobs of an app take that finds nothing in the store.

    Attributes:
        jobs: how many jobs start.
        starting: the minutes until their programs run, together.
        builds: the minutes of all builds.
        rehearsals: the minutes of all rehearsals.
    """

    jobs: int
    starting: float
    builds: float
    rehearsals: float

    @property
    def sentence(self) -> str:
        """The minutes in words."""
        total = self.starting + self.builds + self.rehearsals
        parts = (("start", self.starting), ("build", self.builds), ("rehearse", self.rehearsals))
        detail = ", ".join(f"{minutes:.0f} to {verb}" for verb, minutes in parts if minutes)
        jobs = f"{self.jobs} jobs with a GPU, which take" if self.jobs > 1 else "a job with a GPU, which takes"
        return (
            f"a deployment that finds nothing in the store starts {jobs} about {total:.0f} minutes ({detail}), a rough "
            "estimate"
        )


@dataclass(frozen=True)
class ServedRepository:
    """A repository of an app, and how the app serves it.

    Attributes:
        construct: the path of the construct that serves it.
        directory: the directory of the repository.
        mode: how an endpoint serves it.
        platform: the platform that serves it.
        environment: the container's settings. Of the variables for the models' own use, it has only PYTHONPATH, without
            its value.
        acknowledge: the warnings that the app acknowledges, and those of the repository itself.
        recipes: the recipes of the app. A recipe of the user's own class is replaced by the files that it makes.
        rehearsal: the golden requests of the app; None if the repository itself has them, or there are none.
    """

    construct: str
    directory: Path
    mode: Mode
    platform: ServingPlatform
    environment: ContainerEnvironment
    acknowledge: Mapping[str, str]
    recipes: tuple[Recipe, ...]
    rehearsal: Rehearsal | None = None

    def read(self) -> ModelRepository:
        """Read the repository as the app does.

        Raises:
            RepositoryError: the directory cannot be read.
        """
        return ModelRepository.from_directory(
            self.directory, acknowledge=self.acknowledge, recipes=self.recipes, rehearsal=self.rehearsal
        )


def served_document(
    served: Mapping[str, Prepared], mode: Mode, environment: ContainerEnvironment, assembly: Path, *, promotes: bool
) -> dict[str, Any]:
    """The description as JSON.

    Args:
        served: the repositories that the construct serves, by ensemble; at least one.
        mode: how an endpoint serves them.
        environment: the container's settings.
        assembly: the directory of the cloud assembly, to which the directories are relative, so that both can move.
        promotes: whether the store promotes their archives, so that no job builds or rehearses them.
    """
    distinct = list({id(each): each for each in served.values()}.values())
    rehearsals = {name: each.rehearsal for name, each in served.items() if each.rehearsal is not None}
    minutes = WorkMinutes(0, 0)
    if not promotes:
        builds = sum(each.build_minutes for each in distinct)
        rehearsed = {each.key: each.minutes for each in rehearsals.values()}
        minutes = WorkMinutes(round(builds, 1), round(sum(rehearsed.values()), 1))
    return {
        "minutes": minutes._asdict(),
        "passes": {name: each.pass_key for name, each in rehearsals.items()},  # whose object has its figures
        "mode": mode,
        **serving_document(distinct[0].platform, environment),
        "repositories": [
            {
                "directory": os.path.relpath(each.root.resolve(), assembly.resolve()),
                "acknowledge": dict(each.acknowledgements),
                "recipes": [_recipe(recipe) for recipe in each.recipes],
                **_rehearsal(each),
            }
            for each in (prepared.repository for prepared in distinct)
        ],
    }


def gpu_minutes(documents: Iterable[Mapping[str, Any]]) -> GpuMinutes | None:
    """The minutes of the jobs of an app, from its descriptions; None if it builds and rehearses nothing.

    Raises:
        ConfigurationError: another version of the library wrote a description.
    """
    try:
        works = [WorkMinutes(**each["minutes"]) for each in documents]
    except (LookupError, TypeError) as error:
        raise ConfigurationError(
            f"another version of cdk-triton has written the app ({error}): run `cdk synth` again"
        ) from error
    jobs = [each for each in works if each.builds or each.rehearsals]
    if not jobs:
        return None
    builds, rehearsals = sum(each.builds for each in jobs), sum(each.rehearsals for each in jobs)
    return GpuMinutes(len(jobs), len(jobs) * JOB_START_MINUTES, builds, rehearsals)


def served_repositories(construct: str, document: Mapping[str, Any], assembly: Path) -> Iterator[ServedRepository]:
    """The repositories of a description.

    Args:
        construct: the path of the construct.
        document: what `served_document` wrote.
        assembly: the directory of the cloud assembly.

    Raises:
        ConfigurationError: another version of the library wrote the description.
    """
    try:
        platform, environment = parse_serving(document)
        for each in document["repositories"]:
            directory = Path(os.path.relpath(assembly / each["directory"]))
            recipes = tuple(map(_parsed, each["recipes"]))
            mode = cast("Mode", document["mode"])
            rehearsal = rehearsal_in(directory, json.loads(each.get("rehearsal", "null")))
            acknowledge = each["acknowledge"]
            yield ServedRepository(construct, directory, mode, platform, environment, acknowledge, recipes, rehearsal)
    except (ConfigurationError, RepositoryError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"another version of cdk-triton has written what {construct} serves ({error}): run `cdk synth` again"
        ) from error


def _rehearsal(repository: ModelRepository) -> dict[str, str]:
    """The golden requests that the app gives; those of `cdk-triton.toml` are read from there."""
    given = repository.rehearsal
    if given is None or given == read_settings(repository.root).rehearsal:
        return {}
    return {"rehearsal": json.dumps(rehearsal_table(given, repository.root))}


def _recipe(recipe: Recipe) -> dict[str, Any]:
    from cdk_triton.artifacts.recipes.documents import (  # an app without recipes needs none
        DeclaredRecipe,
        recipe_document,
    )

    if isinstance(recipe, DeclaredRecipe):
        return {"document": json.dumps(recipe_document(recipe))}  # as text, because metadata loses null values
    return {"produces": list(recipe.produces)}


def _parsed(document: Mapping[str, Any]) -> Recipe:
    if "document" in document:
        from cdk_triton.artifacts.recipes.documents import parse_recipe

        return parse_recipe(json.loads(document["document"]))
    return PromisedFiles(tuple(document["produces"]))
