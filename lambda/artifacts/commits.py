"""Commits archives: writes the archive if it is absent, then its manifest, which is the commit."""

from __future__ import annotations

import json
import logging
from typing import Any

from protocol.layout import ARCHIVE, ARTIFACT_KEY_METADATA, build_outputs_prefix
from protocol.plan import Commit

from .copying import copy_if_absent, reading
from .failure import ArtifactError, NotYetError
from .invocation import Invocation
from .reports import BrokenBuildError, BuildReport, read_report
from .storage import LostRaceError, Storage, StoredObject

__all__ = [
    "PROMOTED_FROM",
    "check_owner",
    "commit_archive",
    "commit_asset",
    "commit_built",
    "committed",
    "manifest_head",
    "recorded_sha256",
    "stored",
]

MANIFEST_SCHEMA = 1

PROMOTED_FROM = "promoted-from"
"""The key in the metadata of an archive of the bucket of the store that it was copied from."""

log = logging.getLogger(__name__)


def committed(commit: Commit, storage: Storage) -> StoredObject | None:
    """The archive, which is verified or else committed; None if it is absent.

    Raises:
        NotYetError: the manifest was deleted while it was written.
        ArtifactError: the archive is not the one that was committed, or has another owner.
    """
    manifest = storage.read(commit.manifest)
    archive = storage.head(commit.archive)
    if manifest is not None:
        return _verified(commit, archive, manifest[0])
    return None if archive is None else commit_archive(commit, archive, storage)


def stored(commit: Commit, storage: Storage) -> StoredObject | None:
    """The archive, verified, if it is committed; nothing is written.

    Raises:
        ArtifactError: the archive is not the one that was committed.
    """
    manifest = storage.read(commit.manifest)
    return None if manifest is None else _verified(commit, storage.head(commit.archive), manifest[0])


def recorded_sha256(commit: Commit, storage: Storage) -> str | None:
    """The SHA-256 of a committed archive, from its manifest; None if a synthesis has packed it."""
    manifest = storage.read(commit.manifest)
    build = {} if manifest is None else json.loads(manifest[0]).get("build", {})
    sha256: str | None = build.get("archive", {}).get("sha256")
    return sha256


def commit_asset(commit: Commit, assets: str, invocation: Invocation) -> StoredObject:
    """Bring an archive that the synthesis packed, and commit it.

    Raises:
        NotYetError: the time is up.
        ArtifactError: the asset is missing.
    """
    storage = invocation.storage
    source = storage.head(str(commit.asset), bucket=assets)
    if source is None:
        raise ArtifactError(f"the archive s3://{assets}/{commit.asset} is missing; deploy again to upload it")
    metadata = {ARTIFACT_KEY_METADATA: commit.artifact_key}
    archive = copy_if_absent(source, commit.archive, metadata, storage, invocation.turn)
    return commit_archive(commit, archive, storage)


def commit_built(commit: Commit, build: str, invocation: Invocation) -> StoredObject | None:
    """Verify the archive that an ended build has left, and commit it; None if the build has not finished it.

    Raises:
        NotYetError: the time is up; the verified and copied parts are kept.
        BrokenBuildError: the archive differs from the build's own report.
    """
    storage = invocation.storage
    report = read_report(build, commit, storage)
    if report is None:
        return None
    source = storage.head(f"{build_outputs_prefix(build)}{commit.artifact_key}/{ARCHIVE}")
    if source is None or source.size != report.size:
        found = "is missing" if source is None else f"has {source.size} bytes"
        raise BrokenBuildError(f"{ARCHIVE} of the build {build} {found}, but build.json records {report.size} bytes")

    def check(source: StoredObject, first: int, size: int) -> None:
        with reading(source, invocation.turn):
            report.check_part(source, first, size, storage)

    metadata = {ARTIFACT_KEY_METADATA: commit.artifact_key, "build": build}
    archive = copy_if_absent(source, commit.archive, metadata, storage, invocation.turn, check)
    return commit_archive(commit, archive, storage)


def check_owner(found: StoredObject, artifact_key: str) -> None:
    """Reject an object that another writer has stored under the key.

    Raises:
        ArtifactError: the object has another owner.
    """
    owner = found.metadata.get(ARTIFACT_KEY_METADATA)
    if owner != artifact_key:
        has = "no artifact key" if owner is None else f"the artifact key {owner}"
        raise ArtifactError(
            f"{found} has {has} in its metadata, but {artifact_key} is expected: cdk-triton did not write the object, "
            "or two artifacts share its name; delete the object if nothing uses it, and deploy again"
        )


def commit_archive(commit: Commit, archive: StoredObject, storage: Storage) -> StoredObject:
    """Write the manifest of an archive that is in its place, if it is absent.

    Raises:
        NotYetError: the manifest was deleted while it was written.
        ArtifactError: the archive has another owner, or another one was committed.
    """
    check_owner(archive, commit.artifact_key)
    try:
        storage.write(commit.manifest, _manifest(commit, archive, storage))
    except LostRaceError:
        found = storage.read(commit.manifest)
        if found is None:
            raise NotYetError(f"s3://{storage.bucket}/{commit.manifest} vanished") from None
        return _verified(commit, storage.head(commit.archive), found[0])
    log.info("committed %s, %d bytes", archive, archive.size)
    return archive


def manifest_head(commit: Commit) -> dict[str, Any]:
    """The beginning of every manifest.

    The metadata is that of the deployment that writes the manifest. A later deployment of the same artifact key finds
    the manifest and does not change it; that deployment's metadata is in the tags of its SageMaker Model.
    """
    return {
        "schema": MANIFEST_SCHEMA,
        "repository": commit.repository,
        "artifact_key": commit.artifact_key,
        "platform": commit.platform,
        **({"metadata": commit.metadata} if commit.metadata else {}),
    }


def _manifest(commit: Commit, archive: StoredObject, storage: Storage) -> bytes:
    document = manifest_head(commit)
    document["archive"] = {"key": archive.key, "size": archive.size, "etag": archive.etag}
    if (origin := archive.metadata.get(PROMOTED_FROM)) is not None:
        document |= {"promoted_from": origin, **_report_from(origin, commit, storage)}
    elif commit.build is not None:
        document["build"] = _report_of(commit, archive, storage)
    return json.dumps(document, indent=2).encode()


def _report_from(origin: str, commit: Commit, storage: Storage) -> dict[str, Any]:
    """The build and metadata of an archive, from the manifest in the store that it was promoted from."""
    found = storage.read(commit.manifest, bucket=origin)
    document = {} if found is None else json.loads(found[0])
    # The first store recorded who built and approved it, and stores that promote it copy that.
    metadata = document.get("promoted_metadata", document.get("metadata"))
    kept = {"build": document.get("build"), "promoted_metadata": metadata}
    return {name: value for name, value in kept.items() if value is not None}


def _report_of(commit: Commit, archive: StoredObject, storage: Storage) -> dict[str, Any]:
    """The report of the build that made the archive, which may be another build than the one that was read."""
    build = archive.metadata.get("build", "")
    report: BuildReport | None = read_report(build, commit, storage) if build else None
    if report is None:  # expired; the archive was verified before it was copied
        return {"build": build}
    if report.size != archive.size:
        raise ArtifactError(
            f"{archive} has {archive.size} bytes, but the build {build} wrote {report.size}; delete the archive, and "
            "deploy again"
        )
    return report.document


def _verified(commit: Commit, archive: StoredObject | None, manifest: bytes) -> StoredObject:
    fix = "restore the committed versions of the archive and the manifest, or delete both objects, and deploy again"
    if archive is None:
        raise ArtifactError(f"{commit.manifest} exists, but {commit.archive} does not; {fix}")
    try:
        written = json.loads(manifest)["archive"]
        same = (written["size"], written["etag"]) == (archive.size, archive.etag)
    except (ValueError, LookupError, TypeError) as error:
        raise ArtifactError(f"{commit.manifest} is not a manifest of cdk-triton ({error!r}); {fix}") from error
    if not same:
        raise ArtifactError(f"{archive} is not the archive that {commit.manifest} records; {fix}")
    return archive
