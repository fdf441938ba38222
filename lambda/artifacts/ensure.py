"""What is still to be done for a plan, decided anew at every poll from what the bucket holds.

There is no other state: two polls may run at once, a poll may die between any two calls, an event may come twice or
late. The rules that make this safe:

* an archive is written only where there is none, so the first committer wins and the others adopt its archive;
* the manifest is written last and only where there is none: it is the commit;
* what is there already is verified before it is called done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from .copying import copy_if_absent
from .failure import ArtifactError
from .fleet_index import write_index
from .plan import Commit, FleetCopy, Plan
from .request import Request
from .storage import CONNECTIONS, LostRaceError, Storage, StoredObject

__all__ = ["ensure"]

MANIFEST_SCHEMA = 1

log = logging.getLogger(__name__)

Copier = Callable[[StoredObject, str, str], StoredObject]


def ensure(request: Request, storage: Storage, remaining_millis: Callable[[], int]) -> None:
    """Return when every object of the request's plan exists and is verified.

    Args:
        request: the request.
        storage: the store's bucket.
        remaining_millis: how long this invocation may still run, in milliseconds.

    Raises:
        NotYetError: the next poll has to go on.
        ArtifactError: something is wrong that no further poll mends.
    """
    plan = _plan(request, storage)
    copier = partial(copy_if_absent, storage=storage, remaining_millis=remaining_millis)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        commit = partial(_commit, assets=request.plan_bucket, storage=storage, copier=copier)
        archives = {archive.key: archive for archive in pool.map(commit, plan.commits)}
        if plan.fleet is not None:
            serve = partial(_serve, archives=archives, storage=storage, copier=copier)
            list(pool.map(serve, plan.fleet.copies))
    if plan.fleet is not None:
        write_index(plan.fleet, storage)
    log.info("plan %s is in place: %d archives", request.physical_id, len(plan.commits))


def _plan(request: Request, storage: Storage) -> Plan:
    found = storage.read(request.plan_key, bucket=request.plan_bucket)
    if found is None:
        raise ArtifactError(
            f"the plan s3://{request.plan_bucket}/{request.plan_key} is missing; deploy again to publish it"
        )
    return Plan.parse(found[0], sha256=request.physical_id)


def _commit(commit: Commit, assets: str, storage: Storage, copier: Copier) -> StoredObject:
    """The committed archive."""
    manifest = storage.read(commit.manifest)
    archive = storage.head(commit.archive)
    if manifest is not None:
        return _verified(commit, archive, manifest[0])
    if archive is None:
        source = storage.head(commit.asset, bucket=assets)
        if source is None:
            raise ArtifactError(f"the archive s3://{assets}/{commit.asset} is missing; deploy again to publish it")
        archive = copier(source, commit.archive, commit.artifact_key)
    _check_owner(archive, commit.artifact_key)
    try:
        storage.write(commit.manifest, _manifest(commit, archive))
    except LostRaceError:
        return _commit(commit, assets, storage, copier)  # now there is a manifest: verify it
    log.info("committed %s, %d bytes", archive, archive.size)
    return archive


def _manifest(commit: Commit, archive: StoredObject) -> bytes:
    document = {
        "schema": MANIFEST_SCHEMA,
        "repository": commit.repository,
        "artifact_key": commit.artifact_key,
        "platform": commit.platform,
        "archive": {"key": archive.key, "size": archive.size, "etag": archive.etag},
    }
    return json.dumps(document, indent=2).encode()


def _verified(commit: Commit, archive: StoredObject | None, manifest: bytes) -> StoredObject:
    mend = "restore the version of the archive that was committed, or delete both to have them written anew"
    if archive is None:
        raise ArtifactError(f"{commit.manifest} is there, {commit.archive} is not; {mend}")
    try:
        written = json.loads(manifest)["archive"]
        same = (written["size"], written["etag"]) == (archive.size, archive.etag)
    except (ValueError, LookupError, TypeError) as error:
        raise ArtifactError(f"{commit.manifest} is not a manifest of cdk-triton ({error!r}); {mend}") from error
    if not same:
        raise ArtifactError(f"{archive} is not the archive that {commit.manifest} commits; {mend}")
    return archive


def _serve(copy: FleetCopy, archives: dict[str, StoredObject], storage: Storage, copier: Copier) -> None:
    """Make the committed archive exist under the fleet's prefix."""
    archive = archives[copy.archive]
    target = storage.head(copy.target) or copier(archive, copy.target, copy.artifact_key)
    _check_owner(target, copy.artifact_key)
    if target.size != archive.size:
        raise ArtifactError(
            f"{target} has {target.size} bytes, {archive} has {archive.size}; delete the former, deploy again"
        )


def _check_owner(found: StoredObject, artifact_key: str) -> None:
    owner = found.metadata.get("artifact-key")
    if owner != artifact_key:
        raise ArtifactError(
            f"{found} belongs to artifact {owner}, not to {artifact_key}: cdk-triton did not write it, or its name is "
            "used twice; delete it if nothing uses it, and deploy again"
        )
