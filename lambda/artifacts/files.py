"""Commits data that is served uncompressed: writes the files that are absent, then the manifest.

The manifest lists every file with its size and ETag. It is the commit, as it is for an archive.
"""

from __future__ import annotations

import json
import logging
from functools import partial

from protocol.layout import ARTIFACT_KEY_METADATA
from protocol.plan import Commit, File

from .commits import check_owner, manifest_head
from .copying import copy_if_absent
from .failure import ArtifactError, NotYetError
from .invocation import Invocation
from .storage import LostRaceError, StoredObject

__all__ = ["commit_files"]

FIX = "restore the committed versions of the manifest and its files, or delete all of them, and deploy again"

log = logging.getLogger(__name__)


def commit_files(commit: Commit, assets: str, invocation: Invocation) -> None:
    """Bring the files that are not there yet, and commit them; committed files are verified.

    The invocation's own `each` must not call this function, because the function waits for calls of that `each`.

    Args:
        commit: the commit; it has files.
        assets: the build plan's bucket.
        invocation: this invocation.

    Raises:
        NotYetError: the time is up; the copied files are kept.
        ArtifactError: an asset is missing, or a file is not the one that was committed or has another owner.
    """
    storage = invocation.storage
    manifest = storage.read(commit.manifest)
    if manifest is not None:
        _verify(commit, manifest[0], invocation)
        return
    commit_file = partial(_commit_file, commit, assets=assets, invocation=invocation)
    found = list(invocation.each(commit_file, commit.files or ()))
    try:
        storage.write(commit.manifest, _manifest(commit, found))
    except LostRaceError:
        manifest = storage.read(commit.manifest)
        if manifest is None:
            raise NotYetError(f"s3://{storage.bucket}/{commit.manifest} vanished") from None
        _verify(commit, manifest[0], invocation)
        return
    log.info("committed %d files below %s", len(found), commit.archive)


def _commit_file(commit: Commit, file: File, *, assets: str, invocation: Invocation) -> StoredObject:
    storage, key = invocation.storage, commit.archive + file.path
    stored = storage.head(key)
    if stored is None and file.asset is None:
        stored = _write_empty(key, invocation)
    elif stored is None:
        source = storage.head(file.asset or "", bucket=assets)
        if source is None:
            raise ArtifactError(f"the file s3://{assets}/{file.asset} is missing; deploy again to upload it")
        stored = copy_if_absent(source, key, {ARTIFACT_KEY_METADATA: commit.artifact_key}, storage, invocation.turn)
    if file.asset is not None:
        check_owner(stored, commit.artifact_key)
    if stored.size != file.size:
        raise ArtifactError(
            f"{stored} has {stored.size} bytes, but the plan has {file.size} for {file.path}; delete the object, and "
            "deploy again"
        )
    return stored


def _write_empty(key: str, invocation: Invocation) -> StoredObject:
    """Write an empty file, because a multipart copy cannot have an empty part."""
    try:
        invocation.storage.write(key, b"")
    except LostRaceError:
        log.info("another deployment was faster: %s", key)
    found = invocation.storage.head(key)
    if found is None:
        raise NotYetError(f"s3://{invocation.storage.bucket}/{key} vanished")
    return found


def _manifest(commit: Commit, found: list[StoredObject]) -> bytes:
    document = manifest_head(commit)
    document["files"] = [{"key": file.key, "size": file.size, "etag": file.etag} for file in found]
    return json.dumps(document, indent=2).encode()


def _verify(commit: Commit, manifest: bytes, invocation: Invocation) -> None:
    try:
        written = {each["key"]: (each["size"], each["etag"]) for each in json.loads(manifest)["files"]}
    except (ValueError, LookupError, TypeError) as error:
        raise ArtifactError(f"{commit.manifest} is not cdk-triton's manifest of files ({error!r}); {FIX}") from error
    keys = [commit.archive + file.path for file in commit.files or ()]
    if set(keys) != set(written):
        raise ArtifactError(f"{commit.manifest} records other files than the plan; {FIX}")
    for key, found in zip(keys, invocation.each(invocation.storage.head, keys), strict=True):
        if found is None:
            raise ArtifactError(f"{commit.manifest} exists, but {key} does not; {FIX}")
        if (found.size, found.etag) != written[key]:
            raise ArtifactError(f"{found} is not the file that {commit.manifest} records; {FIX}")
