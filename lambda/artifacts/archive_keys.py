"""The keys of an archive that a publisher uploaded, derived from its content.

The caller of a publisher names the keys of its uploads. The keys decide which object serves which caller, so they are
verified. The archive is unpacked as a stream, within bounds, and its keys are computed as the synthesis computes them.
Nothing is written to a disk, and only the paths and hashes of its files are kept. A function has 512 MB, and may read
two archives at once.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NoReturn, cast

from protocol.keys import ArchiveKeys, KeyInputs
from protocol.publication import MAX_ENTRIES

from .failure import ArtifactError

__all__ = ["archive_keys"]

MAX_PATH_LENGTH = 1024
"""The characters of a path. An object key of S3 has as many bytes."""

MAX_PATHS_LENGTH = 4 * 1024**2
"""The characters of all paths. The text that is hashed has up to 12 bytes for each of them."""

MAX_BYTES = 100 * 1024**3
"""The size of the content, more than a function can unpack in the 15 minutes that it may run."""

MAX_RATIO = 100
MIN_BOMB_BYTES = 1024**3
"""Content of more than this size may be `MAX_RATIO` times as large as its archive. Weights hardly compress, and gzip
makes zeros 1,032 times smaller ("Maximum Compression Factor", https://zlib.net/zlib_tech.html)."""

MAX_HEADER_BYTES = 64 * 1024
"""The size of an extended header, which `tarfile` reads as a whole."""

_BLOCK_BYTES = 1024 * 1024
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_UNBOUNDED = (tarfile.XGLTYPE, tarfile.GNUTYPE_SPARSE)
"""`tarfile` keeps all global headers, and reads the map of a sparse file, of any length, as a whole."""

_GZIP = 16 + zlib.MAX_WBITS


def archive_keys(
    chunks: Iterator[bytes], inputs: KeyInputs, name: str, is_over: Callable[[], bool] = lambda: False
) -> ArchiveKeys:
    """Read an archive, a single gzip member, to its end and return its keys.

    Args:
        chunks: its bytes.
        inputs: the inputs of the keys other than its files.
        name: the archive's name in messages.
        is_over: whether the time for reading it is up.

    Raises:
        ArtifactError: the archive is damaged, contains something that no archive of this library contains, or takes too
            long.
    """
    stream = _Gunzip(chunks, is_over)
    files: dict[str, str] = {}
    length = 0
    try:
        content = cast(IO[bytes], stream)
        with _Archive.open(fileobj=content, mode="r|", tarinfo=_Member, bufsize=_BLOCK_BYTES) as members:
            for number, member in enumerate(members):
                if number >= MAX_ENTRIES:
                    raise _RejectedError(f"contains more than {MAX_ENTRIES} files and directories")
                length += len(member.name)
                if length > MAX_PATHS_LENGTH:
                    raise _RejectedError(f"contains paths with more than {MAX_PATHS_LENGTH} characters in total")
                _take(members, member, files)
                members.members.clear()  # else it keeps every header
            while rest := members.fileobj.read(_BLOCK_BYTES):  # `tarfile` has read further than its last header
                if rest.strip(b"\0"):
                    raise _RejectedError("has data after its end-of-archive marker")
    except (_RejectedError, RecursionError) as error:
        fault = error if isinstance(error, _RejectedError) else "has headers nested in headers"
        raise ArtifactError(f"the archive {name} {fault}; publish an archive that cdk-triton has packed") from error
    except _TooSlowError as error:
        raise ArtifactError(
            f"the archive {name} takes longer to read than a Lambda function may run; move large files into inputs of "
            "recipes (S3File), and publish again"
        ) from error
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise ArtifactError(
            f"the archive {name} is damaged ({error}); publish the ensemble from its repository with --recheck"
        ) from error
    return inputs.keys(files)


class _RejectedError(Exception):
    """A fault of the archive, as the end of a sentence."""


class _TooSlowError(Exception):
    """The time for reading is up."""


class _Archive(tarfile.TarFile):
    members: list[tarfile.TarInfo]
    """The headers that were read."""
    fileobj: IO[bytes]
    """The content, from behind the last header on."""


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        try:
            found = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf.strip(b"\0"):  # `tarfile` takes a damaged header behind a file for the end of the archive
                raise tarfile.ReadError(str(error)) from error
            raise
        if found.type in _UNBOUNDED:
            raise _RejectedError("has a global PAX header or a sparse file")
        if found.type in _EXTENDED and found.size > MAX_HEADER_BYTES:
            raise _RejectedError(f"has a header of {found.size} bytes, but at most {MAX_HEADER_BYTES} are allowed")
        return found

    def _proc_gnusparse_10(self, *_: object) -> NoReturn:
        """`tarfile` would read the map of a PAX sparse file, of any length, as a whole."""
        raise _RejectedError("contains a sparse file")


def _take(members: tarfile.TarFile, member: tarfile.TarInfo, files: dict[str, str]) -> None:
    name = member.name
    if len(name) > MAX_PATH_LENGTH or name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
        raise _RejectedError(
            f"contains the path {name[:MAX_PATH_LENGTH]!r}, which is absolute, has more than {MAX_PATH_LENGTH} "
            "characters, or has a part that is empty, '.' or '..'"
        )
    if "\0" in name:  # only PAX can write it, and no file system has it
        raise _RejectedError(f"contains the path {name!r}, which has a NUL character")
    if member.isdir():
        return
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise _RejectedError(f"contains {name!r}, which is a link or another special file")
    if name in files:
        raise _RejectedError(f"contains {name!r} twice")
    content = members.extractfile(member)
    digest = hashlib.sha256()
    while content is not None and (block := content.read(_BLOCK_BYTES)):
        digest.update(block)
    files[name] = digest.hexdigest()


class _Gunzip:
    """The content of a single gzip member, in bounded memory. Anything after the member is an error."""

    def __init__(self, chunks: Iterator[bytes], is_over: Callable[[], bool]) -> None:
        self._chunks = chunks
        self._is_over = is_over
        self._stream = zlib.decompressobj(_GZIP)
        self._input = b""
        self._packed = self._unpacked = 0

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, and fewer only at the end."""
        found = bytearray()
        while len(found) < size:
            if self._is_over():
                raise _TooSlowError
            if self._stream.eof:
                if self._stream.unused_data or self._input or next(self._chunks, b""):
                    raise _RejectedError("has data after its gzip member")
                break
            chunk = self._input or next(self._chunks, b"")
            if not chunk:
                raise EOFError("it ends too early")
            content = self._stream.decompress(chunk, size - len(found))
            self._input = self._stream.unconsumed_tail
            self._count(len(chunk) - len(self._input), len(content))
            found += content
        return bytes(found)

    def _count(self, packed: int, unpacked: int) -> None:
        """Check that the content stays within its bounds."""
        self._packed += packed
        self._unpacked += unpacked
        if self._unpacked > MAX_BYTES:
            raise _RejectedError(f"unpacks to more than {MAX_BYTES} bytes")
        if self._unpacked > max(MIN_BOMB_BYTES, MAX_RATIO * self._packed):
            raise _RejectedError(f"unpacks to more than {MAX_RATIO} times its size")
