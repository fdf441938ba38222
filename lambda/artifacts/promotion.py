"""Copies archives and passes from the store that they are promoted from, instead of making them again.

Two builds of the same inputs differ in their bytes and in their speed, so this store gets the very archive that was
tested.
"""

from __future__ import annotations

import json
import logging

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError

from protocol.documents import DocumentError
from protocol.layout import ARTIFACT_KEY_METADATA
from protocol.plan import Commit
from protocol.rehearsal import RehearsalPass, RehearsedArchive

from .commits import PROMOTED_FROM, check_owner, commit_archive, recorded_sha256
from .copying import copy_if_absent
from .failure import ArtifactError, error_code, is_forbidden
from .invocation import Invocation
from .storage import Storage, StoredObject

__all__ = ["promote", "promoted_pass"]

PROMOTED_PART_BYTES = 64 * 1024 * 1024
"""From another region, a function in a VPC reads each part into its memory of 512 MB, for two archives at a time."""

log = logging.getLogger(__name__)


def promote(commit: Commit, invocation: Invocation) -> StoredObject:
    """Copy an archive that the source store has committed, and commit it here.

    Raises:
        NotYetError: the time is up; the copied parts are kept.
        ArtifactError: the source store has not committed it, or this store has no source store.
    """
    storage, origin = invocation.storage, invocation.promotes_from
    if origin is None:
        raise ArtifactError(
            f"the plan promotes {commit.repository!r} from another store, but this artifact store does not promote "
            "from a store; first deploy the stack of this artifact store with promotes_from"
        )
    try:
        found = storage.read(commit.manifest, bucket=origin)
    except (ConnectTimeoutError, EndpointConnectionError) as error:  # nothing else of this request was lost
        raise ArtifactError(
            f"the store s3://{origin} does not answer ({error}); a function in a VPC reaches S3 of another region only "
            "through a NAT gateway, because VPC endpoints serve their own region: give the subnets of this artifact "
            "store such a route, and deploy again"
        ) from error
    except ClientError as error:
        if error_code(error) == "NoSuchBucket":  # as before the first deployment of a store with a bucket_name
            raise ArtifactError(
                f"this artifact store promotes from the store s3://{origin}, whose bucket does not exist: correct the "
                "name in promotes_from, or first deploy the stack of that store"
            ) from error
        if is_forbidden(error):
            error.add_note("(the stack of that store allows this account to read with store.grant_read)")
        raise
    if found is None:
        raise ArtifactError(
            f"the store s3://{origin} does not have the artifact of {commit.repository!r} that this stack needs "
            f"({commit.platform}, key {commit.artifact_key}): first deploy a stack with the same files, recipes, "
            "release and GPU to that store"
        )
    source = storage.head(commit.archive, bucket=origin)
    if source is None or not _records(found[0], source):
        raise ArtifactError(
            f"s3://{origin}/{commit.archive} is not the archive that its manifest records; restore the archive in "
            "that store, and deploy again"
        )
    check_owner(source, commit.artifact_key)
    metadata = {ARTIFACT_KEY_METADATA: commit.artifact_key, PROMOTED_FROM: origin}
    archive = copy_if_absent(source, commit.archive, metadata, storage, invocation.turn, part_bytes=PROMOTED_PART_BYTES)
    return commit_archive(commit, archive, storage)


def promoted_pass(commit: Commit, archive: StoredObject, key: str, invocation: Invocation) -> RehearsalPass | None:
    """The pass in the source store, if it is for the archive that was copied from there; None otherwise.

    Args:
        commit: the commit of the archive.
        archive: the archive in this store.
        key: the object key of the pass, which is the same in both stores.
        invocation: this invocation.
    """
    storage, origin = invocation.storage, invocation.promotes_from
    if origin is None or archive.metadata.get(PROMOTED_FROM) != origin:
        return None
    text, manifest = (storage.read(each, bucket=origin) for each in (key, commit.manifest))
    if text is None or manifest is None:
        return None
    try:
        found = RehearsalPass.parse(text[0])
    except DocumentError as error:
        log.warning("the pass s3://%s/%s cannot be read: %s", origin, key, error)
        return None
    return (
        found if _records(manifest[0], found.archive) and _is_copy_of(found.archive, commit, archive, storage) else None
    )


def _is_copy_of(rehearsed: RehearsedArchive, commit: Commit, archive: StoredObject, storage: Storage) -> bool:
    """Whether the archive here is the one that was rehearsed: the source store may have built another one since.

    The ETags of copies differ with the size of their parts. The synthesis packs the same bytes each time, so the
    manifest of such an archive records no SHA-256.
    """
    return archive.size == rehearsed.size and recorded_sha256(commit, storage) in (None, rehearsed.sha256)


def _records(manifest: bytes, archive: StoredObject | RehearsedArchive) -> bool:
    try:
        written = json.loads(manifest)["archive"]
        return (written["size"], written["etag"]) == (archive.size, archive.etag)
    except (ValueError, LookupError, TypeError):
        return False
