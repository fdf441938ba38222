"""The input of a build of a repository with recipes: JSON values, the same for the same inputs.

`ensemble_document` returns an entry of `ensembles` in the build program's `plan.json`, and `platform_document` its
`platform`. The artifact store's handler composes `plan.json` from them. The module of each recipe describes the
recipe's own part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final, NamedTuple

from cdk_triton.artifacts.keys import Keys, keys_and_files
from cdk_triton.artifacts.recipes.recipe import BuildRecipe, recipes_of
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.plan import BuildInput

if TYPE_CHECKING:
    from cdk_triton.artifacts.contents import ArchiveFile
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = [
    "JOB_START_MINUTES",
    "Build",
    "build_inputs",
    "ensemble_document",
    "job_minutes",
    "planned_build",
    "platform_document",
    "s3_files",
]

JOB_START_MINUTES: Final = 8.0
"""Until the program runs: a machine with a GPU is found and pulls an image of many gigabytes. A guess, not measured."""

_ENSEMBLE_MINUTES: Final = 0.5
"""For an archive to be unpacked and packed."""


def ensemble_document(repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
    """The build of a repository: sources, further inputs, steps in order of execution, and files to remove at the end.

    Raises:
        ConfigurationError: a recipe does not fit the repository or the platform; two recipes write one file, or one
            writes a file that exists already; a recipe reads a file that is missing; recipes read each other's files in
            a circle; a path contains a CDK token.
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
    """
    for recipe in recipes_of(repository):
        recipe.validate(repository, platform)
    keys, files = keys_and_files(repository, platform)
    return planned_build(repository, platform, keys, files).ensemble


class Build(NamedTuple):
    """What a build makes of a repository.

    Attributes:
        ensemble: the `ensemble_document`.
        minutes: roughly how long the recipes take.
    """

    ensemble: dict[str, object]
    minutes: float


def planned_build(
    repository: ModelRepository, platform: ServingPlatform, keys: Keys, files: Mapping[ArchiveFile, str]
) -> Build:
    """The build of a repository whose recipes fit the platform.

    Args:
        repository: the repository.
        platform: the platform that serves the repository.
        keys: the keys of the repository.
        files: the SHA-256 of each file of the archive of its sources.

    Raises:
        ConfigurationError: the recipes do not fit each other or the repository.
    """
    recipes = recipes_of(repository)
    from_s3 = s3_files(recipes)
    hashes = {file.path: sha256 for file, sha256 in files.items()}
    _check_files(repository, recipes, hashes, from_s3)
    ensemble: dict[str, object] = {
        "repository": repository.name,
        "artifact_key": keys.artifact,
        "sources": f"sources/{keys.sources}.tar.gz",
        "files": hashes,
        "inputs": [
            {"path": _input_path(file), "sha256": file.sha256, "to": path} for path, file in sorted(from_s3.items())
        ],
        "steps": [recipe.step(repository, platform) for recipe in in_order(recipes)],
        "remove": _consumed_files(repository, recipes),
    }
    minutes = _ENSEMBLE_MINUTES + sum(recipe.estimated_minutes(repository) for recipe in recipes)
    return Build(ensemble, minutes)


def build_inputs(
    ensemble: Mapping[str, object], from_s3: Mapping[str, S3File], sources_asset: str
) -> tuple[BuildInput, ...]:
    """The files that the handler copies into the folder that a build reads.

    Args:
        ensemble: the `ensemble_document`.
        from_s3: the files that the recipes read from S3, by the path that they get.
        sources_asset: the key of the archive of the repository's sources in the CDK's assets bucket.

    Returns:
        An input for each object, the sources first. The sources have no SHA-256, because the build checks every file
        in them.
    """
    files = {file.sha256: file for _, file in sorted(from_s3.items(), reverse=True)}
    return (
        BuildInput(None, sources_asset, str(ensemble["sources"])),
        *(BuildInput(file.bucket, file.key, _input_path(file), sha256=sha) for sha, file in sorted(files.items())),
    )


def platform_document(platform: ServingPlatform) -> dict[str, str | None]:
    """The values that a build expects of the machine and the image; `None` where the library has no source for one."""
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


def job_minutes(builds: Sequence[float]) -> float:
    """A rough estimate of the minutes that one job takes to start and to build everything; 0 if it builds nothing.

    Args:
        builds: the minutes of each `Build`.
    """
    return JOB_START_MINUTES + sum(builds) if builds else 0.0


def in_order(recipes: Iterable[BuildRecipe]) -> tuple[BuildRecipe, ...]:
    """The recipes, each after the recipes whose files it reads, otherwise in the given order.

    Raises:
        ConfigurationError: recipes read each other's files in a circle.
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


def s3_files(recipes: Iterable[BuildRecipe]) -> Mapping[str, S3File]:
    """The files that recipes read from S3, by the path that they get.

    Raises:
        ConfigurationError: two recipes put different objects at one path.
    """
    files: dict[str, S3File] = {}
    for recipe in recipes:
        for path, file in recipe.s3_files.items():
            if files.setdefault(path, file).sha256 != file.sha256:
                raise ConfigurationError(
                    f"{recipe} puts the S3 object {file.key} at {path}, where another recipe puts the S3 object "
                    f"{files[path].key}: give both recipes the same S3File"
                )
    return files


def _check_files(
    repository: ModelRepository, recipes: tuple[BuildRecipe, ...], here: Collection[str], s3_files: Mapping[str, S3File]
) -> None:
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


def _consumed_files(repository: ModelRepository, recipes: Iterable[BuildRecipe]) -> list[str]:
    """The files that the recipes list, and the external data of their ONNX files."""
    from cdk_triton.onnx_models.reader.file import OnnxFile, onnx_file  # only needed with recipes

    consumed = {path for recipe in recipes for path in recipe.consumes}
    files = {file.path.as_posix(): file.source for file in repository.files}
    for path in consumed & files.keys():
        if path.endswith(".onnx") and isinstance(read := onnx_file(files[path]), OnnxFile):
            beside = {normpath(PurePosixPath(path).parent / data.location) for data in read.external_data}
            consumed |= beside & files.keys()
    return sorted(consumed)


def _input_path(file: S3File) -> str:
    return f"inputs/{file.sha256}"
