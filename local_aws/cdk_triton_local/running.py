"""Finds state directories: the default, the option for another one, and those with a running local AWS."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from cdk_triton.artifacts import cache_directory

__all__ = ["DEFAULT_DIRECTORY", "directory_option", "known_directories", "listed_as_running"]

DEFAULT_DIRECTORY = Path(".cdk-triton/local")


def directory_option(directory: Path) -> str:
    """Return the option, after a space, that a command needs to find a state directory; "" for the default one."""
    if directory.absolute() == DEFAULT_DIRECTORY.absolute():
        return ""
    return f" --directory {shlex.quote(str(directory))}"


@contextlib.contextmanager
def listed_as_running(directory: Path) -> Iterator[None]:
    """List a state directory while its local AWS runs. It is not an error if the list cannot be written."""
    entry = _place() / hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_bytes(os.fsencode(directory))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            entry.unlink(missing_ok=True)


def known_directories() -> list[Path]:
    """The listed directories; the local AWS of each may have been killed since."""
    found = []
    with contextlib.suppress(OSError):
        for entry in sorted(_place().iterdir()):
            with contextlib.suppress(OSError):
                found.append(Path(os.fsdecode(entry.read_bytes())))
    return found


def _place() -> Path:
    return cache_directory() / "running"
