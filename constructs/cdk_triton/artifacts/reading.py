"""Reads the files of a repository in blocks, and finds out whether a file changes meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cdk_triton.errors import ArchiveError

__all__ = ["BLOCK_BYTES", "Progress", "changed", "file_state", "read_blocks"]

Progress = Callable[[int, int], object]
"""Is called with the bytes done and the bytes in all, after every block."""

BLOCK_BYTES: Final = 1 << 20


def changed(repository: Path, when: str) -> ArchiveError:
    """The error for files of a repository that have changed since its keys were computed."""
    return ArchiveError(
        f"a file in {repository} changed while {when}: try again when no other program writes to this directory"
    )


def file_state(file: Path) -> os.stat_result:
    """The state of a regular file.

    Raises:
        ArchiveError: the file is missing, or no regular file.
    """
    try:
        state = file.stat()
    except OSError as error:
        raise ArchiveError(
            f"{file} cannot be read: {error.strerror}; the file existed when cdk-triton read the repository, so try "
            "again when no other program changes the repository"
        ) from error
    if not stat.S_ISREG(state.st_mode):  # opening a named pipe would wait for ever
        raise ArchiveError(f"{file} is not a regular file, and an archive can contain only regular files: remove it")
    return state


def read_blocks(file: Path, state: os.stat_result) -> Iterator[memoryview]:
    """The content of a file in blocks. All are in the same buffer, so use each before you take the next.

    Raises:
        ArchiveError: the file cannot be read, or is not in the state `state`, before or after.
    """
    buffer = memoryview(bytearray(min(state.st_size, BLOCK_BYTES)))
    left = state.st_size
    try:
        with file.open("rb") as stream:  # buffered, so that only the last block is short
            while left > 0 and (count := stream.readinto(buffer[: min(left, BLOCK_BYTES)])):
                left -= count
                yield buffer[:count]
            after = os.fstat(stream.fileno())
    except OSError as error:
        raise ArchiveError(f"{file} cannot be read: {error.strerror}; make it readable") from error
    if _write_state(after) != _write_state(state):
        raise ArchiveError(
            f"{file} changed while cdk-triton read it: try again when no other program writes to this file"
        )


def _write_state(state: os.stat_result) -> tuple[int, int, int, int]:
    """The part of the state that a write changes. A new hard link changes the change time, which is not in it."""
    return state.st_size, state.st_mtime_ns, state.st_dev, state.st_ino
