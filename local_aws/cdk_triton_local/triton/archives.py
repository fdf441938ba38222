"""Unpacks an archive of model data, in one pass, within bounds, and only what a model repository is made of.

A small archive can claim to hold much: zeros compress a thousandfold, and a sparse file costs nothing at all. So the
unpacked size is bounded by the archive's own size, by the largest volume of a SageMaker instance, and by the free space
of the disk. Holes of sparse files are written as holes.
"""

from __future__ import annotations

import errno
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self, cast

from botocore.exceptions import BotoCoreError
from isal import igzip, igzip_lib

from cdk_triton.errors import LocalError
from cdk_triton.sagemaker import limits

__all__ = ["unpack"]

# The cast, because isal's types call its exception an instance of Exception.
_DAMAGED: Final = (EOFError, igzip.BadGzipFile, tarfile.TarError, cast("type[Exception]", igzip_lib.IsalError))

_GIB: Final = 1 << 30
_ALWAYS_ALLOWED: Final = _GIB  # bytes, whatever the size of the archive
_MOST_RATIO: Final = 200  # weights compress by a quarter; a file of nothing but zeros a thousandfold
_MOST_MEMBERS: Final = 100_000
_LONGEST_HEADER: Final = 1 << 20  # bytes of an extended header, which tarfile reads into memory
_EXTENDED_HEADERS: Final = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class _BoundedHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header of 512 bytes."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _EXTENDED_HEADERS and header.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"an extended header of {header.size} bytes")
        return header


class _Bounds:
    """The bounds of one archive, and how much of them is used.

    Args:
        location: the location of the archive, for messages.
        size: the size of the archive in bytes, or None if it is not known.
        target: the directory that it is unpacked to.
    """

    def __init__(self, location: str, size: int | None, target: Path) -> None:
        self._location = location
        self._most = limits.MAX_VOLUME_GB * _GIB
        if size is not None:
            self._most = min(self._most, max(_ALWAYS_ALLOWED, _MOST_RATIO * size))
        self._target = target
        self._bytes = 0
        self._members = 0

    def take(self, member: tarfile.TarInfo, written: int) -> None:
        """Count a member before it is unpacked.

        Args:
            member: the member.
            written: the bytes that it takes on the disk.

        Raises:
            LocalError: the members are too many or too large.
            OSError: the disk does not have the room.
        """
        self._members += 1
        self._bytes += member.size
        if self._members > _MOST_MEMBERS:
            raise LocalError(
                f"the archive {self._location} holds more than {_MOST_MEMBERS} files and directories; pack the model "
                "repository alone"
            )
        if self._bytes > self._most:
            raise LocalError(
                f"the archive {self._location} unpacks to more than {self._most / _GIB:.3g} GiB, the limit for its "
                f"size (1 GiB, or {_MOST_RATIO} times the archive, up to the {limits.MAX_VOLUME_GB} GiB of a "
                f"SageMaker volume); check the size of its {member.name!r}"
            )
        if written > shutil.disk_usage(self._target).free:
            raise OSError(errno.ENOSPC, "No space left on device")


def unpack(body: IO[bytes], target: Path, location: str, size: int | None) -> None:
    """Unpack a `.tar.gz` into an existing directory; if it fails, part of it may be there.

    Args:
        body: the archive.
        target: the directory.
        location: the location of the archive, for messages.
        size: the size of the archive in bytes, or None if it is not known.

    Raises:
        LocalError: the archive is not a complete `.tar.gz`, it contains something that is not allowed or too much, or
            the disk is full.
    """
    try:
        content = igzip.open(body, "rb")  # type: ignore[no-untyped-call]  # isal types its classes, not this function
        bounds = _Bounds(location, size, target)
        with content, tarfile.open(fileobj=content, mode="r|", tarinfo=_BoundedHeader) as archive:
            for member in archive:
                _unpack_member(archive, member, target, location, bounds)
            while content.read(1 << 20):
                pass  # the archive ends before its checksum, which has to be compared too
    except _DAMAGED as error:
        raise LocalError(f"the model data {location} is not a complete .tar.gz ({error}); upload it again") from error
    except BotoCoreError as error:
        raise LocalError(f"the model data {location} cannot be read to its end: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LocalError(
                f"the disk is full: the model data {location} does not fit into {target.parent}; free some space"
            ) from error
        raise LocalError(f"the model data {location} cannot be unpacked: {error}") from error


def _unpack_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, location: str, bounds: _Bounds
) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise LocalError(
            f"the archive {location} holds {member.name!r}, a path that leads out of the archive; "
            "pack the model repository again, from its own directory"
        )
    path = target / name
    pieces = _pieces_without_holes(member)
    bounds.take(member, sum(length for _, length in pieces))
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.isreg():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file, cast("IO[bytes]", archive.extractfile(member)) as content:
            for offset, length in pieces:
                _copy(content, None, offset - file.tell())
                file.seek(offset)
                _copy(content, file, length)
            file.truncate(member.size)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        raise LocalError(
            f"the archive {location} holds {member.name!r}, which is a link or a device; "
            "pack the file itself (tar --dereference)"
        )


def _pieces_without_holes(member: tarfile.TarInfo) -> list[tuple[int, int]]:
    """Offset and length of each piece."""
    if not member.isreg():
        return []
    sparse = cast("list[tuple[int, int]] | None", member.sparse)  # None of a file without holes
    return [(0, member.size)] if sparse is None else sparse


def _copy(content: IO[bytes], file: IO[bytes] | None, length: int) -> None:
    """Without a file, only read: the archive is a stream and cannot seek."""
    while length:
        piece = content.read(min(length, 1 << 20))
        if not piece:
            raise EOFError("a file ends before its size")
        if file is not None:
            file.write(piece)
        length -= len(piece)
