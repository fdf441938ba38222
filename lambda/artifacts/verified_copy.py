"""Copies an upload after its keys were compared with those of the request.

Callers of a publisher may overwrite their uploads at any time. So the keys are computed from the bytes of one answer of
S3, and each part of the copy has the condition that the object still has the ETag of this answer. An earlier upload of
the copy is not resumed, because its parts may have other bytes.
"""

from __future__ import annotations

from protocol.keys import ArchiveKeys, KeyInputs
from protocol.layout import ARTIFACT_KEY_METADATA, PUBLISH_PREFIX

from .archive_keys import archive_keys
from .copying import copy_if_absent
from .failure import ArtifactError
from .storage import Storage, StoredObject
from .turn import RESERVE_MILLIS, Turn, TurnIsOverError

__all__ = ["copy_verified", "verified"]


def verified(origin: str, wanted: ArchiveKeys, inputs: KeyInputs, storage: Storage, turn: Turn) -> StoredObject:
    """Read an archive, and return the object that has the keys of the request.

    Args:
        origin: the archive's object key.
        wanted: the keys of the request.
        inputs: the inputs of the keys other than the files of the archive.
        storage: the store's bucket.
        turn: the time in which the archive is read and copied.

    Raises:
        ArtifactError: the archive is missing, damaged or too large, or has other keys.
    """
    opened = storage.open(origin)
    if opened is None:
        fix = "publish again to upload it"
        if not origin.startswith(PUBLISH_PREFIX):  # of another platform: a served archive, or its sources
            fix = "publish the ensemble from its repository"
        raise ArtifactError(f"the archive {origin} is missing; {fix}")
    source, chunks = opened
    # Some time is left for the copy. Another attempt would read everything again and get no further.
    keys = archive_keys(chunks, inputs, origin, lambda: turn.is_over(RESERVE_MILLIS))
    if keys != wanted:
        raise ArtifactError(
            f"the publisher's platform and recipes give the archive {origin} the source key {keys.source} and the "
            f"artifact key {keys.artifact}, but the request has {wanted.source} and {wanted.artifact}; publish with "
            "the publisher's version of cdk-triton"
        )
    return source


def copy_verified(source: StoredObject, target: str, wanted: ArchiveKeys, storage: Storage, turn: Turn) -> StoredObject:
    """Copy an archive that was read to `target`, if that is absent; return the object with that key.

    Args:
        source: the archive, as `verified` returned it.
        target: the object key of the copy.
        wanted: the keys of the request.
        storage: the store's bucket.
        turn: the time in which parts of the copy are begun.

    Raises:
        NotYetError: the archive or the copy changed meanwhile.
        ArtifactError: the time is up.
    """
    try:
        metadata = {ARTIFACT_KEY_METADATA: wanted.artifact}
        return copy_if_absent(source, target, metadata, storage, turn, resume=False)
    except TurnIsOverError as error:
        raise ArtifactError(
            f"the archive {source.key} of {source.size:,} bytes takes longer to copy than a Lambda function may run; "
            "move large files into inputs of recipes (S3File), and publish again"
        ) from error
