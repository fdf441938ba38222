"""The pass of a rehearsal, which the store's handler writes. The command reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .documents import Document

__all__ = ["RehearsalPass", "RehearsedArchive"]


@dataclass(frozen=True)
class RehearsedArchive:
    """An archive that was rehearsed: its size in bytes and its ETag in S3, as in its manifest, and its SHA-256."""

    size: int
    etag: str
    sha256: str


@dataclass(frozen=True)
class RehearsalPass(Document):
    """A rehearsal that passed.

    Attributes:
        repository: the name of the repository.
        artifact_key: of the archive.
        key: the rehearsal key; see `keys.rehearsal_key`.
        image: the identity of the image.
        archive: the archive that was rehearsed. The pass does not count for another one.
        golden: the SHA-256 of the ZIP file of the golden requests.
        document: what the build program read about the rehearsal.
        result: what the build program measured.
        promoted_from: the bucket of the store in which the rehearsal ran; None if it ran for this store.
    """

    repository: str
    artifact_key: str
    key: str
    image: str
    archive: RehearsedArchive
    golden: str
    document: Mapping[str, Any]
    result: Mapping[str, Any]
    promoted_from: str | None = None
