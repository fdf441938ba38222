"""Copies one object on the server side, in slices, if its key is absent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from .failure import ArtifactError, NotYetError
from .storage import LostRaceError, Storage, StoredObject

__all__ = ["copy_if_absent"]

PART_BYTES = 512 * 1024 * 1024
"""S3 takes parts of 5 MiB to 5 GiB and at most 10,000 of them, which makes 4.9 TiB here. A part is copied within
seconds, far within `RESERVE_MILLIS`."""

RESERVE_MILLIS = 60_000
"""No part is begun with less time than this left in the invocation."""

log = logging.getLogger(__name__)


def copy_if_absent(
    source: StoredObject, key: str, artifact_key: str, storage: Storage, remaining_millis: Callable[[], int]
) -> StoredObject:
    """Copy `source` to `key` if there is nothing, and return what is there then: this copy or another committer's.

    One path for every size. `CopyObject` ends at 5 GB, and its If-None-Match is honoured by fewer S3 implementations
    than that of `CompleteMultipartUpload`. An upload that an earlier poll began is resumed, unless the source is
    younger than the upload, which then holds parts of another archive.

    Args:
        source: the object to copy.
        key: where to, in the store's bucket.
        artifact_key: kept with the copy, so that whoever finds it can tell whose it is.
        storage: the store's bucket.
        remaining_millis: how long this invocation may still run, in milliseconds.

    Raises:
        NotYetError: the time is up; the parts so far are kept.
        ArtifactError: the source is empty.
    """
    if source.size == 0:
        raise ArtifactError(f"{source} is empty; delete it and deploy again to publish it anew")
    try:
        _copy(source, key, artifact_key, storage, remaining_millis)
        log.info("copied %s to %s, %d bytes", source, key, source.size)
    except LostRaceError as error:
        log.info("another deployment was faster: %s", error)
    found = storage.head(key)
    if found is None:
        raise NotYetError(f"{source} changed, or the upload of its copy vanished, while it was copied")
    return found


def _copy(
    source: StoredObject, key: str, artifact_key: str, storage: Storage, remaining_millis: Callable[[], int]
) -> None:
    upload = storage.oldest_upload(key, since=source.modified) if source.size > PART_BYTES else None
    parts = {} if upload is None else storage.parts(key, upload)
    for number, span in _spans(source.size):
        if number in parts:
            continue
        if remaining_millis() < RESERVE_MILLIS:
            raise NotYetError(f"{len(parts)} of {-(-source.size // PART_BYTES)} parts of {source} are copied")
        if upload is None:
            upload = storage.begin_upload(key, {"artifact-key": artifact_key})
        parts[number] = storage.copy_part(source, key, upload, number, span)
    if upload is not None:
        storage.complete_upload(key, upload, parts)


def _spans(size: int) -> Iterator[tuple[int, str | None]]:
    """Number and range of each part; a single part has no range, which S3 refuses below 5 MB."""
    if size <= PART_BYTES:
        yield 1, None
        return
    for number, first in enumerate(range(0, size, PART_BYTES), start=1):
        yield number, f"bytes={first}-{min(first + PART_BYTES, size) - 1}"
