"""The content of an archive: the one list that the archive writer packs and the keys hash.

For a repository with recipes, this is the archive of its sources: its files as they are, including those that only
builds read. The build unpacks it, adds the recipes' files, removes those that only builds read, and packs the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cdk_triton.triton import Model, ModelRepository

__all__ = ["PLACEHOLDER", "ArchiveFile", "archive_files"]

PLACEHOLDER = ".keep"
"""The name of the empty file in each version directory of an ensemble, if none of these directories has a file.

git, S3 and ZIP archives do not keep empty directories, but Triton does not load an ensemble without a version
directory.
"""


class ArchiveFile(NamedTuple):
    """One file of an archive.

    Attributes:
        path: the path in the archive, with `/`.
        source: the file on the disk with the content; None for an empty file.
        size: the size of the file in bytes when the repository was read.
    """

    path: str
    source: Path | None
    size: int


def archive_files(repository: ModelRepository) -> tuple[ArchiveFile, ...]:
    """The files of the repository's archive, in the order of their paths.

    Triton loads no ensemble without a version directory ("at least one version must be available under the version
    policy", core: src/model_lifecycle.cc:453-458). It reads nothing in that directory, and git, S3 and ZIP archives
    keep no empty directories. So an ensemble without files in its version directories gets an empty file in each of
    them, or in `1/` if it has no version directory. A checkout that lost its empty `1/` then gives the same archive as
    one that has it.
    """
    files = [ArchiveFile(file.path.as_posix(), file.source, file.size) for file in repository.files]
    for model in repository.models:
        if model.is_ensemble:
            files.extend(_placeholders(model))
    return tuple(sorted(files, key=lambda file: file.path))


def _placeholders(model: Model) -> Iterator[ArchiveFile]:
    directories = [model.directory / str(version) for version in model.versions or (1,)]
    if not any(directory in file.path.parents for file in model.files for directory in directories):
        for directory in directories:
            yield ArchiveFile((directory / PLACEHOLDER).as_posix(), None, 0)
