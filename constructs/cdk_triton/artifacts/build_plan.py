"""The input of a build of a repository with recipes: JSON values, the same for the same inputs.

`ensemble_document` is an entry of `ensembles` in the plan of a build, `platform_document` its `platform`; the handler
of the artifact store composes the plan from them. The module of each recipe describes the recipe's own part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from cdk_triton._checked import checked
from cdk_triton.artifacts.contents import archive_files, consumed_files
from cdk_triton.artifacts.keys import BuildKeys, build_keys, sources_key
from cdk_triton.artifacts.recipes.recipe import BuildRecipe, recipes_of
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = [
    "build_inputs",
    "ensemble_document",
    "estimated_minutes",
    "keyed_ensemble",
    "platform_document",
    "sources_path",
]

_JOB_START_MINUTES: Final = 8.0
"""Until the program runs: a machine with a GPU is found and pulls an image of many gigabytes. A guess, not measured."""

_ENSEMBLE_MINUTES: Final = 0.5
"""For an archive to be unpacked and packed."""


def sources_path(repository: ModelRepository) -> str:
    """The path of the archive of a repository's sources in the folder that a build reads.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
        ConfigurationError: a path contains a CDK token.
    """
    return _sources_path(sources_key(repository))


def _sources_path(key: str) -> str:
    return f"sources/{key}.tar.gz"


@checked
def ensemble_document(repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
    """The build of a repository: sources, further inputs, steps in order of execution, and files to remove at the end.

    Raises:
        ConfigurationError: a recipe does not fit the repository or the platform; two recipes write one file, or one
            writes a file that exists already; a recipe reads a file that is missing; recipes read each other's files in
            a circle; a path contains a CDK token.
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
    """
    return keyed_ensemble(repository, platform)[0]


def keyed_ensemble(repository: ModelRepository, platform: ServingPlatform) -> tuple[dict[str, object], BuildKeys]:
    """`ensemble_document`, and the keys of the repository.

    Raises:
        ConfigurationError, ArchiveError: as `ensemble_document`.
    """
    recipes = recipes_of(repository)
    for recipe in recipes:
        recipe.validate(repository, platform)
    s3_files = _s3_files(recipes)
    _check_files(repository, recipes, s3_files)
    keys = build_keys(repository, platform)
    document: dict[str, object] = {
        "repository": repository.name,
        "artifact_key": keys.artifact,
        "sources": _sources_path(keys.sources),
        "files": keys.files,
        "inputs": [
            {"path": _input_path(file), "sha256": file.sha256, "to": path} for path, file in sorted(s3_files.items())
        ],
        "steps": [recipe.step(repository, platform) for recipe in in_order(recipes)],
        "remove": list(consumed_files(repository)),
    }
    return document, keys


@checked
def build_inputs(repository: ModelRepository, sources_asset: str) -> list[dict[str, object]]:
    """The files that the handler copies into the folder that a build reads.

    Args:
        repository: the repository.
        sources_asset: the key of the archive of the repository's sources in the CDK's assets bucket.

    Returns:
        For each object its bucket, key, version, path in the folder, and SHA-256. With the bucket `None`, the object
        is in the CDK's assets bucket. With the SHA-256 `None`, the build checks every file in the object.
    """
    sources: dict[str, object] = {
        "bucket": None,
        "key": sources_asset,
        "version": None,
        "path": sources_path(repository),
        "sha256": None,
    }
    files = {file.sha256: file for _, file in sorted(_s3_files(recipes_of(repository)).items(), reverse=True)}
    inputs = [sources]
    for sha256, file in sorted(files.items()):
        place = {"bucket": file.bucket, "key": file.key, "version": None}
        inputs.append({**place, "path": _input_path(file), "sha256": sha256})
    return inputs


@checked
def platform_document(platform: ServingPlatform) -> dict[str, str | None]:
    """The values that a build expects of the machine and the image. A value without a source is `None`."""
    versions = platform.versions

    def read(program: str) -> str | None:
        if versions is None or program in versions.assumed:
            return None
        version: str | None = getattr(versions, program)
        return None if version is None or version.endswith("x") else version

    return {
        "image": platform.image_identity,
        "release": platform.release,
        "gpu": platform.gpu,
        "compute_capability": platform.compute_capability,
        "tensorrt": read("tensorrt"),
        "dali": read("dali"),
        "python": read("python"),
    }


@checked
def estimated_minutes(repositories: Iterable[ModelRepository]) -> float:
    """A rough estimate of the minutes that one job takes to start and to build all repositories; 0 without recipes."""
    built = [(repository, recipes) for repository in repositories if (recipes := recipes_of(repository))]
    if not built:
        return 0.0
    steps = sum(recipe.estimated_minutes(repository) for repository, recipes in built for recipe in recipes)
    return _JOB_START_MINUTES + _ENSEMBLE_MINUTES * len(built) + steps


def in_order(recipes: Iterable[BuildRecipe]) -> tuple[BuildRecipe, ...]:
    """The recipes, each after those that make what it reads, otherwise in the order in which they were given.

    Raises:
        ConfigurationError: recipes wait for each other.
    """
    waiting = list(recipes)
    ordered: list[BuildRecipe] = []
    while waiting:
        missing = {path for recipe in waiting for path in recipe.produces}
        ready = next((recipe for recipe in waiting if missing.isdisjoint(recipe.consumes)), None)
        if ready is None:
            circle = " and ".join(f"{recipe} reads {_shared(recipe, missing)}" for recipe in waiting)
            raise ConfigurationError(
                f"the recipes have a circular dependency ({circle}), so none of them can run first: let one recipe "
                "read another file"
            )
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered)


def _shared(recipe: BuildRecipe, missing: set[str]) -> str:
    return ", ".join(path for path in recipe.consumes if path in missing)


def _s3_files(recipes: Iterable[BuildRecipe]) -> Mapping[str, S3File]:
    """The files from S3 by the path that they get."""
    files: dict[str, S3File] = {}
    for recipe in recipes:
        for path, file in recipe.s3_files.items():
            if files.setdefault(path, file).sha256 != file.sha256:
                raise ConfigurationError(
                    f"{recipe} puts the S3 object {file.key} at {path}, where another recipe puts the S3 object "
                    f"{files[path].key}: give both recipes the same S3File"
                )
    return files


def _check_files(repository: ModelRepository, recipes: tuple[BuildRecipe, ...], s3_files: Mapping[str, S3File]) -> None:
    here = {file.path for file in archive_files(repository)}
    makers = Counter(path for recipe in recipes for path in recipe.produces)
    for recipe in recipes:
        for path in recipe.produces:
            if makers[path] > 1:
                both = " and ".join(str(each) for each in recipes if path in each.produces)
                raise ConfigurationError(f"{both} write the same file, {path}: keep one of these recipes")
            if path in here or path in s3_files:
                is_here = "the repository has already: remove that file"
                rest = is_here if path in here else "an S3File of a recipe provides: keep one of the two"
                raise ConfigurationError(f"{recipe} writes {path}, which {rest}")
        for path in recipe.s3_files:
            if path in here:
                raise ConfigurationError(
                    f"{recipe} puts a file from S3 at {path}, but the repository already has a file at this path: "
                    "remove one of the two files"
                )
        for path in recipe.consumes:
            if path not in here and path not in makers and path not in s3_files:
                if (repository.root / path).is_dir():
                    raise ConfigurationError(f"{recipe} reads {path}, which is a directory: name its files")
                raise ConfigurationError(
                    f"{recipe} reads {path}, which {repository.root} does not contain and no recipe makes: add the "
                    "file, or name another file"
                )


def _input_path(file: S3File) -> str:
    return f"inputs/{file.sha256}"
