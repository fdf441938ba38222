"""A file that is in S3 already."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["S3File"]


@dataclass(frozen=True)
class S3File:
    """An object in S3, by content.

    Attributes:
        bucket: its bucket, in the region of the store.
        key: its object key.
        sha256: the SHA-256 of its content, 64 hexadecimal digits. A version id or an ETag would not fix the content;
            the build refuses an object that has another one.
    """

    bucket: str
    key: str
    sha256: str
