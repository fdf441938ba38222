"""Copies archives from the store that they are promoted from, instead of building or uploading them again.

Two builds of the same inputs differ in their bytes and in their speed, so this store gets the very archive that was
tested.
"""

from __future__ import annotations

import json

from protocol.layout import ARTIFACT_KEY_METADATA
from protocol.plan import Commit

from .commits import check_owner, commit_archive
from .copying import copy_if_absent
from .failure import ArtifactError
from .invocation import Invocation
from .storage import StoredObject

__all__ = ["promote"]


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
    found = storage.read(commit.manifest, bucket=origin)
    if found is None:
        raise ArtifactError(
            f"the store s3://{origin} does not have the artifact of {commit.repository!r} that this stack needs "
            f"({commit.platform}, key {commit.artifact_key}): first deploy a stack with the same files, recipes, "
            "release and GPU to that store"
        )
    source = storage.head(commit.archive, bucket=origin)
    if source is None or not _is_of(found[0], source):
        raise ArtifactError(
            f"s3://{origin}/{commit.archive} is not the archive that its manifest records; restore the archive in "
            "that store, and deploy again"
        )
    check_owner(source, commit.artifact_key)
    metadata = {ARTIFACT_KEY_METADATA: commit.artifact_key, "promoted-from": origin}
    archive = copy_if_absent(source, commit.archive, metadata, storage, invocation.turn)
    return commit_archive(commit, archive, storage)


def _is_of(manifest: bytes, archive: StoredObject) -> bool:
    try:
        written = json.loads(manifest)["archive"]
        return (written["size"], written["etag"]) == (archive.size, archive.etag)
    except (ValueError, LookupError, TypeError):
        return False
