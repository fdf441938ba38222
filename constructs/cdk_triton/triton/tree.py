"""The files of a model repository. Links are followed, litter is skipped, and no file is read."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cdk_triton.errors import RepositoryError
from cdk_triton.triton.rehearsal import GOLDEN_DIRECTORY
from cdk_triton.triton.repository_settings import SETTINGS_NAME

__all__ = ["LITTER", "RepositoryFile", "Tree", "read_tree"]

LITTER = (
    # Python
    "__pycache__",
    "*.pyc",
    "*.pyo",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
    # version control
    ".git",
    ".gitignore",
    ".gitattributes",
    ".hg",
    ".svn",
    # editors
    ".idea",
    ".vscode",
    "*.swp",
    "*.swo",
    "*~",
    ".#*",
    # systems
    ".DS_Store",
    "._*",
    ".Spotlight-V100",
    ".Trashes",
    "Thumbs.db",
    "desktop.ini",
    ".nfs*",
)
"""Names that never belong in an archive: what tools leave behind. Patterns of `fnmatch`, which distinguish upper and
lower case."""

_LITTER = re.compile("|".join(translate(pattern) for pattern in LITTER))


@dataclass(frozen=True)
class RepositoryFile:
    """A file of a repository.

    Attributes:
        path: the file's path in the archive, relative to the repository.
        source: the path of the file's content on this machine.
        size: the file's size in bytes.
    """

    path: PurePosixPath
    source: Path
    size: int


class Tree(NamedTuple):
    """The contents of a directory.

    Attributes:
        files: sorted by path.
        directories: every directory below the root, empty ones included, sorted by path.
    """

    files: tuple[RepositoryFile, ...]
    directories: tuple[PurePosixPath, ...]


def read_tree(root: Path) -> Tree:
    """List a repository.

    Raises:
        RepositoryError: the root is missing, is not a directory or contains no file; something below it cannot be read,
            is neither file nor directory, or is a link that leads nowhere, out of the root or in a circle.
    """
    if not root.is_dir():
        state = "is not a directory" if root.exists() else "does not exist"
        raise RepositoryError(f"the model repository {str(root)!r} {state}; name the directory that holds the models")
    walk = _Reading(os.path.realpath(root))
    walk.run()
    if not walk.files:
        raise RepositoryError(
            f"the model repository {str(root)!r} holds no file; put <model>/config.pbtxt and <model>/<version>/ into it"
        )
    return Tree(
        tuple(sorted(walk.files, key=lambda file: file.path.parts)),
        tuple(sorted(walk.directories, key=lambda path: path.parts)),
    )


@lru_cache(maxsize=4096)  # the repositories of a multi-model endpoint look alike
def _path(text: str) -> PurePosixPath:
    return PurePosixPath(text)


def _name_fault(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "is not UTF-8 text"
    odd = next(character for character in name if not character.isprintable())
    return f"contains the character U+{ord(odd):04X}, which is not printable"


def _is_for_the_library(entry: os.DirEntry[str]) -> bool:
    """Whether an entry at the top is the settings, or files of golden requests; a model can have their name, too."""
    if entry.name != GOLDEN_DIRECTORY or not entry.is_dir():
        return entry.name == SETTINGS_NAME
    with os.scandir(entry.path) as entries:
        return not any(each.name == "config.pbtxt" or each.name.isdigit() for each in entries)


class _Directory(NamedTuple):
    """All are texts, because joining paths takes much longer than reading a directory.

    Attributes:
        source: the path on this machine.
        prefix: what the paths of the entries in the archive begin with.
        above: the directories that contain it.
    """

    source: str
    prefix: str
    above: tuple[str, ...]


class _Reading:
    def __init__(self, root: str) -> None:
        self.root = root
        self.files: list[RepositoryFile] = []
        self.directories: list[PurePosixPath] = []

    def run(self) -> None:
        pending = [_Directory(self.root, "", ())]
        for directory in pending:  # grows while we walk
            above = (*directory.above, directory.source)
            for entry in self._entries(directory.source):
                if _LITTER.match(entry.name) or (not directory.above and _is_for_the_library(entry)):
                    continue
                if not entry.name.isprintable():
                    raise RepositoryError(
                        f"the name {entry.name!r} in {directory.source} {_name_fault(entry.name)}; rename the "
                        f"{'directory' if entry.is_dir() else 'file'}"
                    )
                below = self._take(entry, directory.prefix + entry.name, above)
                if below is not None:
                    pending.append(below)

    def _take(self, entry: os.DirEntry[str], path: str, above: tuple[str, ...]) -> _Directory | None:
        """Record an entry under its path in the archive, and return it if it is a directory to read."""
        source = entry.path
        try:
            if entry.is_symlink():
                source = self._follow(source, path, above)
            if entry.is_dir():  # known from the listing of the directory, except for a link
                self.directories.append(_path(path))
                return _Directory(source, f"{path}/", above)
            status = entry.stat()
        except OSError as error:
            raise RepositoryError(f"{source} cannot be read: {error.strerror}; make it readable") from error
        if not stat.S_ISREG(status.st_mode):
            raise RepositoryError(f"{source} is neither a file nor a directory; remove it from the repository")
        self.files.append(RepositoryFile(_path(path), Path(source), status.st_size))
        return None

    @staticmethod
    def _entries(source: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(source) as entries:
                return list(entries)
        except OSError as error:
            raise RepositoryError(f"{source} cannot be listed: {error.strerror}; make it readable") from error

    def _follow(self, source: str, path: str, above: tuple[str, ...]) -> str:
        """The target of a link. It has to be in the repository, and must not contain the link."""
        link = Path(source)
        try:
            target = link.resolve(strict=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links, before Python 3.13
            reason = error.strerror if isinstance(error, OSError) else "the links form a circle"
            raise RepositoryError(
                f"the link {path} of {self.root} leads to {str(link.readlink())!r}, which cannot be reached: {reason}; "
                "repair or remove the link"
            ) from error
        if not target.is_relative_to(self.root):
            raise RepositoryError(
                f"the link {path} leads to {target}, out of the model repository {self.root}; "
                "copy the file into the repository"
            )
        if str(target) in above:
            raise RepositoryError(f"the link {path} leads to {target}, which contains the link itself; remove the link")
        return str(target)
