"""The keys of an archive that a publisher uploaded, derived from its content.

A publisher names the keys of what it uploads. They decide which object serves which caller, so they are not taken on
trust. The archive is unpacked as a stream, within bounds, and its keys are computed as in `cdk_triton.artifacts.keys`.
Nothing is written to a disk, and no more than the paths and hashes of its files is kept.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple, cast

from .canonical import sha256_of_json
from .failure import ArtifactError

__all__ = ["ArchiveKeys", "KeyDocument", "archive_keys"]

MAX_FILES = 100_000
MAX_PATH_LENGTH = 1024
"""The characters of a path. An object key of S3 has as many bytes."""

MAX_HEADER_BYTES = 64 * 1024
"""The size of an extended header, which `tarfile` reads as a whole."""

_BLOCK_BYTES = 1024 * 1024
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_GZIP = 16 + zlib.MAX_WBITS


class KeyDocument(NamedTuple):
    """The inputs of keys beside the files.

    Attributes:
        source: of both keys, such as the schema version.
        target: of the artifact key alone: the image and the GPU.
    """

    source: Mapping[str, Any]
    target: Mapping[str, Any]


class ArchiveKeys(NamedTuple):
    """The keys of an archive."""

    source: str
    artifact: str


def archive_keys(chunks: Iterator[bytes], document: KeyDocument, name: str) -> ArchiveKeys:
    """Read an archive, a single gzip member, to its end and return its keys.

    Args:
        chunks: its bytes.
        document: what the keys depend on beside its files.
        name: the archive's, for messages.

    Raises:
        ArtifactError: it is damaged, or contains something that no archive of this library contains.
    """
    stream = _Gunzip(chunks)
    files: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_Member) as members:
            for member in members:
                _take(members, member, files)
        while rest := stream.read(_BLOCK_BYTES):
            if rest.strip(b"\0"):
                raise _RejectedError("has data behind its end")
    except _RejectedError as error:
        raise ArtifactError(f"the archive {name} {error}; upload one that cdk-triton has packed") from error
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise ArtifactError(f"the archive {name} is damaged ({error}); upload it again") from error
    source = {**document.source, "files": files}
    return ArchiveKeys(sha256_of_json(source), sha256_of_json(source | dict(document.target)))


class _RejectedError(Exception):
    """The fault of an archive, as the rest of a sentence."""


class _Member(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > MAX_HEADER_BYTES:
            raise _RejectedError(f"has a header of {found.size} bytes, and {MAX_HEADER_BYTES} are allowed")
        return found


def _take(members: tarfile.TarFile, member: tarfile.TarInfo, files: dict[str, str]) -> None:
    name = member.name
    if len(name) > MAX_PATH_LENGTH or name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
        raise _RejectedError(f"has the path {name[:MAX_PATH_LENGTH]!r}, which is too long or leaves the repository")
    if member.isdir():
        return
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise _RejectedError(f"has {name!r}, which is a link or another special file")
    if name in files or len(files) >= MAX_FILES:
        raise _RejectedError(f"has {name!r} twice" if name in files else f"has more than {MAX_FILES} files")
    content = members.extractfile(member)
    digest = hashlib.sha256()
    while content is not None and (block := content.read(_BLOCK_BYTES)):
        digest.update(block)
    files[name] = digest.hexdigest()


class _Gunzip:
    """The content of a single gzip member, in bounded memory; whatever follows the member is an error."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._stream = zlib.decompressobj(_GZIP)
        self._input = b""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end only."""
        found = bytearray()
        while len(found) < size:
            if self._stream.eof:
                if self._stream.unused_data or self._input or next(self._chunks, b""):
                    raise _RejectedError("has data behind its gzip member")
                break
            chunk = self._input or next(self._chunks, b"")
            if not chunk:
                raise EOFError("it ends too early")
            found += self._stream.decompress(chunk, size - len(found))
            self._input = self._stream.unconsumed_tail
        return bytes(found)
