"""Packs a built repository: the same entries as the library's archive writer gives, in a stored gzip.

The rules are those of `cdk_triton.artifacts.archive`, and a test holds both to the same bytes of tar: entries sorted by
path, directories among them, times and ids 0, fixed modes, PAX. Only the gzip differs: stored, because weights and
TensorRT plans hardly compress (8 % larger, 20 times faster to write, 2 to 4 times faster to unpack), a single member,
without name and time. The placeholder in its sources keeps an ensemble's version directory.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Iterable

from .files import blocks
from .step import BuildError
from .stop import Stop

__all__ = ["PART_BYTES", "pack"]

PART_BYTES = 512 << 20
"""A part's size: what the handler copies in one call, after it has verified its hash."""

_GZIP = 16 + zlib.MAX_WBITS


class _HashingWriter:
    """Hashes the whole file, and each part of it."""

    def __init__(self, stream: BinaryIO, part_bytes: int) -> None:
        self._stream = stream
        self._part_bytes = part_bytes
        self._whole = hashlib.sha256()
        self._parts: list[Any] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        self._stream.write(data)
        self._whole.update(data)
        view = memoryview(data)
        while view:
            room = -self._size % self._part_bytes
            if room == 0:
                self._parts.append(hashlib.sha256())
                room = self._part_bytes
            self._parts[-1].update(view[:room])
            self._size += len(view[:room])
            view = view[room:]

    def report(self) -> dict[str, Any]:
        return {
            "size": self._size,
            "sha256": self._whole.hexdigest(),
            "part_bytes": self._part_bytes,
            "parts": [part.hexdigest() for part in self._parts],
        }


def pack(
    repository: Path, paths: Iterable[str], target: Path, stop: Stop, *, part_bytes: int = PART_BYTES
) -> dict[str, Any]:
    """Pack files of a repository.

    Args:
        repository: the directory.
        paths: the files in it, with `/`.
        target: the archive to write.
        stop: may end it.
        part_bytes: size of the parts that are hashed.

    Returns:
        `archive` of `build.json`: size, sha256, part_bytes and the SHA-256 of each part.

    Raises:
        BuildError: a file is missing or is not a regular file, or the disk is full.
    """
    try:
        with target.open("wb") as stream:
            output = _HashingWriter(stream, part_bytes)
            gzip = zlib.compressobj(0, zlib.DEFLATED, _GZIP)
            for block in _tar(repository, list(paths), stop):
                output.write(gzip.compress(block))
            output.write(gzip.flush())
    except OSError as error:
        raise BuildError(f"the archive cannot be written: {error.strerror}") from error
    return output.report()


def _tar(repository: Path, paths: list[str], stop: Stop) -> Iterable[bytes]:
    for path, is_file in _entries(paths):
        if not is_file:
            yield _header(path, None)
            continue
        file = repository / path
        if file.is_symlink() or not file.is_file():
            raise BuildError(
                f"{path!r} is missing in the built repository, or is not a regular file; correct the "
                "build step that removes or replaces this file"
            )
        size = file.stat().st_size
        yield _header(path, size)
        with file.open("rb") as stream:
            yield from blocks(stream, stop)
        yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)  # the end-of-archive mark


def _entries(files: list[str]) -> list[tuple[str, bool]]:
    """Each path with whether it is a file; a directory's path sorts before those below it."""
    entries = dict.fromkeys(files, True)
    for path in files:
        entries.update((parent.as_posix(), False) for parent in PurePosixPath(path).parents if parent.name)
    return sorted(entries.items())


def _header(path: str, size: int | None) -> bytes:
    entry = tarfile.TarInfo(path)  # its defaults: time 0, ids 0, no names
    if size is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
