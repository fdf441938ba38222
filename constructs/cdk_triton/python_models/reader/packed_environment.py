"""Which Python a packed environment has: the archive that conda-pack or venv-pack writes.

The archive is read from the front, and no further than necessary: environments weigh gigabytes.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from isal import igzip, igzip_lib

from cdk_triton.triton.unreadable import Unreadable

__all__ = ["DAMAGED", "PackedEnvironment", "environment_python", "open_archive", "packed_environment"]

# Annotated, because isal's types say nothing of the one and call the other an instance of Exception.
_OPEN: Callable[..., IO[bytes]] = igzip.open
DAMAGED: Final = (EOFError, igzip.BadGzipFile, tarfile.TarError, cast("type[Exception]", igzip_lib.IsalError))
"""The errors of a file that is not an archive, or is a damaged one."""

_CONDA = re.compile(r"conda-meta/python-(3\.\d+)\.\d")
_LIBRARY = re.compile(r"lib/python(3\.\d+)/(?:os\.py|encodings/|site-packages/)")


@dataclass(frozen=True)
class PackedEnvironment:
    """An archive with an environment.

    Attributes:
        python: the version of its Python, `3.10`; None if it has none.
        has_activate: whether it has the script `bin/activate`, which the Python backend needs.
        top: the one directory that contains everything, or "" if there is not one.
        has_directory: whether a directory has the name of that script.
    """

    python: str | None
    has_activate: bool
    top: str
    has_directory: bool = False


def environment_python(path: str) -> str | None:
    """The Python to which a file of an environment belongs, by its path; None if the path does not show it."""
    match = _CONDA.match(path) or _LIBRARY.match(path)
    return None if match is None else match[1]


@contextmanager
def open_archive(path: Path) -> Iterator[IO[bytes]]:
    """The tar archive in a file, which may be compressed with gzip."""
    with path.open("rb") as file:
        head = file.read(2)
        file.seek(0)
        if head != b"\x1f\x8b":
            yield file
            return
        with _OPEN(file, "rb") as stream:
            yield stream


def packed_environment(path: Path) -> PackedEnvironment | Unreadable:
    """Read an archive's list of members as far as necessary."""
    try:
        with open_archive(path) as stream:
            return _read(stream)
    except DAMAGED:
        return Unreadable("is not a tar archive, or is damaged")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")


def _read(stream: IO[bytes]) -> PackedEnvironment | Unreadable:
    python: str | None = None
    has_activate = has_directory = from_conda = False
    tops: set[str] = set()
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            tops.add(name.partition("/")[0])
            python = python or environment_python(name)
            if name == "bin/activate":
                has_activate, has_directory = has_activate or not member.isdir(), member.isdir()
            # conda-pack writes this script into every archive, at the end.
            from_conda = from_conda or name.startswith("conda-meta/")
            if python is not None and (has_activate or from_conda):
                return PackedEnvironment(python, True, "")
    names = tops - {"", "."}
    return PackedEnvironment(python, has_activate, next(iter(names)) if len(names) == 1 else "", has_directory)
