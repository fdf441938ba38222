"""Reads members of an archive that anybody may have written."""

from __future__ import annotations

from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

__all__ = ["beginning_of", "is_readable"]

_MOST: Final = 16 << 20


def is_readable(archive: ZipFile) -> bool:
    """Whether no member is compressed in a way that PyTorch's reader, miniz, does not know."""
    return all(each.compress_type in (ZIP_STORED, ZIP_DEFLATED) for each in archive.infolist())


def beginning_of(archive: ZipFile, name: str) -> bytes:
    """The first 16 MiB of a member: the whole of every usual one, and the texts in a library before its weights."""
    with archive.open(name) as member:
        return member.read(_MOST)
