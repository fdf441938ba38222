"""Copies one object in slices, on the server side where S3 can, if its key is absent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from .failure import ArtifactError, NotYetError
from .storage import LostRaceError, OtherRegionError, Storage, StoredObject
from .turn import Turn, TurnIsOverError

__all__ = ["copy_if_absent", "reading"]

PART_BYTES = 512 * 1024 * 1024
"""S3 takes parts of 5 MiB to 5 GiB and at most 10,000 of them, which makes 4.9 TiB here. A part is copied within
seconds, far within `RESERVE_MILLIS`. An upload keeps its parts, so that a poll which ends between two loses none."""

READERS = 2
"""How many objects are read at once. The speed of a function on AWS has not been measured. At the 28 MB/s that
docs/many_ensembles.md assumes, two parts take 37 seconds; 16 would take longer than `RESERVE_MILLIS`, and an invocation
that is killed fails the deployment."""

_readers = threading.BoundedSemaphore(READERS)

log = logging.getLogger(__name__)


Check = Callable[[StoredObject, int, int], None]
"""Looks at one part of the source before it is copied: its first byte and its size."""


@contextmanager
def reading(what: object, turn: Turn) -> Iterator[None]:
    """Wait for one of the `READERS` to read an object.

    Raises:
        TurnIsOverError: this came too late.
    """
    with _readers:
        if turn.is_over():
            raise TurnIsOverError(f"the time for reading {what} is up")
        yield


def copy_if_absent(
    source: StoredObject,
    key: str,
    metadata: Mapping[str, str],
    storage: Storage,
    turn: Turn,
    check: Check | None = None,
    *,
    resume: bool = True,
    part_bytes: int | None = None,
) -> StoredObject:
    """Copy `source` to `key` if the key is free; return the object with that key, possibly another committer's.

    One path for every size. `CopyObject` ends at 5 GB, and its If-None-Match is honoured by fewer S3 implementations
    than that of `CompleteMultipartUpload`. An upload that an earlier poll began is resumed, unless the source is
    younger than the upload, which then holds parts of another archive.

    Args:
        source: the object to copy.
        key: the key of the copy in the store's bucket.
        metadata: kept with the copy, so that every later reader finds the copy's owner.
        storage: the store's bucket.
        turn: the time in which this poll begins parts.
        check: called before each part is copied; an exception ends the copy. The copy has the condition that the source
            is still the one that was checked.
        resume: whether an upload that an earlier poll began is resumed. A caller with permission to overwrite the
            source can also give it an earlier date: an object that was uploaded in parts has the date at which its
            upload began.
        part_bytes: the size of a part; by default `PART_BYTES`.

    Raises:
        TurnIsOverError: the time is up; the copied parts are kept.
        NotYetError: the source or the copy changed meanwhile.
        ArtifactError: the source is empty.
    """
    if source.size == 0:
        raise ArtifactError(f"{source} is empty; delete the object, and deploy again to upload it")
    try:
        _copy(source, key, metadata, storage, turn, check, resume=resume, part_bytes=part_bytes or PART_BYTES)
        log.info("copied %s to %s, %d bytes", source, key, source.size)
    except LostRaceError as error:
        log.info("another deployment was faster: %s", error)
    found = storage.head(key)
    if found is None:
        raise NotYetError(f"{source} changed, or the upload of its copy vanished, while it was copied")
    return found


def _copy(
    source: StoredObject,
    key: str,
    metadata: Mapping[str, str],
    storage: Storage,
    turn: Turn,
    check: Check | None,
    *,
    resume: bool,
    part_bytes: int,
) -> None:
    resumed = resume and source.size > part_bytes
    upload = storage.oldest_upload(key, since=source.modified) if resumed else None
    parts = {} if upload is None else storage.parts(key, upload)
    for number, first, size in _parts(source.size, part_bytes):
        if number in parts:
            continue
        if turn.is_over():
            raise TurnIsOverError(f"{len(parts)} of {-(-source.size // part_bytes)} parts of {source} are copied")
        if check is not None:
            check(source, first, size)
        if upload is None:
            upload = storage.begin_upload(key, metadata)
        # A single part has no range, because S3 rejects a range of a source below 5 MB.
        span = f"bytes={first}-{first + size - 1}" if size < source.size else None
        try:
            parts[number] = storage.copy_part(source, key, upload, number, span)
        except OtherRegionError:
            with reading(source, turn):
                parts[number] = storage.send_part(source, key, upload, number, span)
    if upload is not None:
        storage.complete_upload(key, upload, parts)


def _parts(total: int, part_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Number, first byte and size of each part."""
    for number, first in enumerate(range(0, total, part_bytes), start=1):
        yield number, first, min(part_bytes, total - first)
