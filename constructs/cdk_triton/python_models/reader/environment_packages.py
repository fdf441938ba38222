"""Which top-level modules a packed environment brings."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cdk_triton.python_models.reader.packed_environment import DAMAGED, open_archive

__all__ = ["MAX_BYTES", "environment_modules", "packed_modules"]

MAX_BYTES: Final = 256 * 2**20
"""The largest archive that is read to its end: that takes a second or two."""

_PACKAGE = re.compile(r"lib/python3\.\d+/site-packages/([^/]+)")
# Files that add directories to Python's path; those of setuptools, virtualenv and namespace packages do not.
_PATHS = re.compile(r"(?!distutils-precedence|_virtualenv|.*nspkg).*\.(pth|egg-link|egg)")


def environment_modules(paths: Iterable[str]) -> frozenset[str] | None:
    """The top-level modules in the directory `site-packages` of an environment, beside the standard library.

    Args:
        paths: the files of the environment, relative to its top.

    Returns:
        The names; None if the environment may have packages elsewhere. That is certain if it has no numpy, without
        which the server's own module cannot be imported.
    """
    entries = {match[1] for match in map(_PACKAGE.match, paths) if match is not None}
    if "numpy" not in entries or any(_PATHS.fullmatch(entry) for entry in entries):
        return None
    return frozenset(entry.partition(".")[0] for entry in entries)


def packed_modules(path: Path) -> frozenset[str] | None:
    """The modules of an archive, as `environment_modules` finds them; None also where it is too large or unreadable."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        with open_archive(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return environment_modules(member.name.removeprefix("./") for member in archive)
    except (OSError, *DAMAGED):
        return None
