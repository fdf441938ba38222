"""Files that a configuration names, found as the file system finds them.

`absent/../labels.txt` is not `labels.txt`, because the file system enters each directory on the way. `labels.txt/` is
not a file. An absolute name is below the directory as well: core's JoinPath.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext, per_check

__all__ = ["NamedFile", "named_file"]

_MISSING, _NOT_A_DIRECTORY = "No such file or directory", "Not a directory"


@dataclass(frozen=True)
class NamedFile:
    """A file or directory that a configuration names.

    Attributes:
        spelled: the path as the server opens it, below the repository.
        path: the file that it leads to, or None if that is outside the repository or missing.
        size: the bytes of the file; None if the file is missing, or if a build makes it.
        error: why the server cannot open it, or "".
        is_directory: whether it is a directory, which the server opens but cannot read.
        is_known: whether it is inside the repository, so that its state is known.
    """

    spelled: str
    path: PurePosixPath | None = None
    size: int | None = None
    error: str = ""
    is_directory: bool = False
    is_known: bool = True


@dataclass(frozen=True)
class _Tree:
    sizes: dict[PurePosixPath, int | None]
    directories: set[PurePosixPath]


@per_check
def _tree(context: CheckContext) -> _Tree:
    repository = context.repository
    sizes: dict[PurePosixPath, int | None] = {file.path: file.size for file in repository.files}
    for model in repository.models:
        sizes |= dict.fromkeys(model.produced)
    directories = {parent for path in sizes for parent in path.parents}
    directories |= {model.directory / name for model in repository.models for name in model.subdirectories}
    return _Tree(sizes, directories | {model.directory for model in repository.models})


def named_file(context: CheckContext, directory: PurePosixPath, name: str) -> NamedFile:
    """Find what the server opens for a name below a directory of the repository."""
    tree = _tree(context)
    spelled = f"{directory}/{name.lstrip('/')}"
    here = PurePosixPath()
    for part in spelled.split("/"):
        if here not in tree.directories:
            return NamedFile(spelled, error=_NOT_A_DIRECTORY if here in tree.sizes else _MISSING)
        if part == ".." and not here.parts:
            return NamedFile(spelled, is_known=False)
        here = here.parent if part == ".." else here / part
    if here in tree.directories:
        return NamedFile(spelled, here, is_directory=True)
    if here not in tree.sizes:
        return NamedFile(spelled, error=_MISSING)
    return NamedFile(spelled, here, tree.sizes[here])
