"""Reads what determines the keys of a repository; `protocol.keys` computes the keys.

Registry, account and region are not part of a key, because the same image is served from everywhere. Times, owners,
modes and order of files are not, because the archive does not keep them. The archive's bytes are not, because gzip's
output differs between processors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from cdk_triton._tokens import reject_token
from cdk_triton.artifacts.contents import ArchiveFile, archive_files
from cdk_triton.artifacts.digests import file_digests
from cdk_triton.artifacts.program import PROGRAM_VERSION
from cdk_triton.artifacts.reading import Progress
from cdk_triton.artifacts.recipes.recipe import recipes_of
from cdk_triton.protocol.canonical import canonical_json
from cdk_triton.protocol.keys import KeyInputs

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = [
    "BUILDER_VERSION",
    "Keys",
    "artifact_key",
    "file_keys",
    "key_inputs",
    "keys_and_files",
    "source_key",
    "sources_key",
]

_SCHEMA_VERSION: Final = 1

BUILDER_VERSION: Final = 1
"""A number in every key. A change of this number changes every key.

Maintainers raise the number only when the same inputs give a different archive. A test compares the bytes of a small
archive, so the test fails if the writer gives other bytes.
"""

_FILES: Final = KeyInputs({"schema": _SCHEMA_VERSION, "builder": BUILDER_VERSION}, {})
"""The inputs of keys other than files, for a repository without recipes and platform."""

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """The keys of a repository: 64 hexadecimal digits each.

    Attributes:
        source: the result of `source_key`.
        artifact: the result of `artifact_key`.
        sources: the result of `sources_key`.
    """

    source: str
    artifact: str
    sources: str


def keys_and_files(
    repository: ModelRepository,
    platform: ServingPlatform,
    *,
    uncompressed: bool = False,
    progress: Progress | None = None,
) -> tuple[Keys, dict[ArchiveFile, str]]:
    """The keys of a repository and its `file_keys`, computed from one reading of its files; see `artifact_key`."""
    inputs = _inputs(repository, key_inputs(platform))
    if uncompressed:
        inputs = replace(inputs, target={**inputs.target, "form": "files"})
    files = file_keys(archive_files(repository), progress=progress)
    hashes = _by_path(files)
    return Keys(*inputs.keys(hashes), _FILES.source_key(hashes)), files


def source_key(repository: ModelRepository, *, progress: Progress | None = None) -> str:
    """The key of a repository's files and recipes, without a platform: 64 hexadecimal digits.

    Args:
        repository: the repository. This function reads each file whose hash is not in the cache (`digests`).
        progress: a function that gets the bytes read so far and the bytes to read in total.

    Raises:
        ArchiveError: a file is missing, cannot be read, or changes while this function reads it.
        ConfigurationError: a path or a recipe contains a CDK token.
    """
    files = file_keys(archive_files(repository), progress=progress)
    return _inputs(repository, _FILES).source_key(_by_path(files))


def sources_key(repository: ModelRepository, *, progress: Progress | None = None) -> str:
    """The key of a repository's files alone, without its recipes. It names the archive of the sources.

    Raises:
        ArchiveError: a file is missing, cannot be read, or changes while this function reads it.
        ConfigurationError: a path contains a CDK token.
    """
    return _FILES.source_key(_by_path(file_keys(archive_files(repository), progress=progress)))


def file_keys(files: Iterable[ArchiveFile], *, progress: Progress | None = None) -> dict[ArchiveFile, str]:
    """The SHA-256 of each file of an archive.

    Raises:
        ArchiveError: a file is missing, cannot be read, or changes while this function reads it.
        ConfigurationError: a path contains a CDK token.
    """
    files = list(files)
    for file in files:
        reject_token(file.path, "the path")
    digests = file_digests([file.source for file in files if file.source is not None], progress=progress)
    return {file: _EMPTY_SHA256 if file.source is None else digests[file.source] for file in files}


def _by_path(files: Mapping[ArchiveFile, str]) -> dict[str, str]:
    return {file.path: sha256 for file, sha256 in files.items()}


def artifact_key(
    repository: ModelRepository,
    platform: ServingPlatform,
    *,
    uncompressed: bool = False,
    progress: Progress | None = None,
) -> str:
    """The key of a repository's archive for a platform: 64 hexadecimal digits.

    Args:
        repository: the repository. This function reads each file whose hash is not in the cache (`digests`).
        platform: the platform that serves the repository.
        uncompressed: whether the instances get the files themselves instead of an archive. The keys of the two forms
            differ.
        progress: a function that gets the bytes read so far and the bytes to read in total.

    Raises:
        ArchiveError: a file is missing, cannot be read, or changes while this function reads it.
        ConfigurationError: a path or a recipe contains a CDK token.
    """
    return keys_and_files(repository, platform, uncompressed=uncompressed, progress=progress)[0].artifact


def key_inputs(platform: ServingPlatform) -> KeyInputs:
    """The inputs of the keys of archives without recipes, other than their files."""
    gpu = {"name": platform.gpu, "compute_capability": platform.compute_capability}
    return replace(_FILES, target={"image": platform.image_identity, "gpu": gpu})


def _inputs(repository: ModelRepository, without_recipes: KeyInputs) -> KeyInputs:
    recipes = [recipe.parameters() for recipe in recipes_of(repository)]
    for parameters in recipes:
        reject_token(canonical_json(parameters), "the recipe")
    return without_recipes.with_recipes(recipes, PROGRAM_VERSION)
