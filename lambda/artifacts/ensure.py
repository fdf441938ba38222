"""Carries out what is left of a build plan, which every poll finds out from the objects in the bucket.

There is no other state. Two polls may run at once, a poll may end between any two calls, and an event may come twice or
late. These rules make that safe:

* An archive is written only if it is absent. So the first committer wins, and the others adopt its archive.
* The manifest is written last, and only if it is absent. It is the commit.
* An object that is there already is verified before it counts as done.
* An archive that is neither packed nor built is copied from the source store (`promotion`).
* One job at a time builds an archive or rehearses it, for all requests (`locks`).
* An archive is used when each of its rehearsals has a pass (`rehearsals`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from functools import partial

from protocol.documents import DocumentError, OtherVersionError
from protocol.layout import ARTIFACT_KEY_METADATA
from protocol.plan import Commit, ServedCopy, StackPlan

from .building import build
from .commits import check_owner, commit_asset, committed
from .copying import copy_if_absent
from .failure import ArtifactError, of_other_version
from .files import commit_files
from .invocation import Invocation
from .multi_model_index import write_index
from .promotion import promote
from .rehearsals import missing_rehearsals
from .request import Request
from .storage import Storage, StoredObject

__all__ = ["ensure", "read_plan"]

log = logging.getLogger(__name__)


def ensure(request: Request, invocation: Invocation) -> None:
    """Return when every object of the request's build plan exists and is verified.

    Args:
        request: the request.
        invocation: this invocation.

    Raises:
        NotYetError: the next poll has to go on.
        ArtifactError: a fault that another poll does not fix.
    """
    storage = invocation.storage
    plan = read_plan(request, storage)
    find_or_commit = partial(_archives, assets=request.plan_bucket, invocation=invocation)
    for commit in (commit for commit in plan.commits if commit.files is not None):
        commit_files(commit, request.plan_bucket, invocation)
    packed = [commit for commit in plan.commits if commit.files is None]
    archives = find_or_commit(packed)
    pending = [commit for commit in packed if commit.archive not in archives]
    rehearsals = missing_rehearsals(plan, archives, request, invocation)
    if pending or rehearsals:
        build(pending, rehearsals, plan.builder, request, invocation)
        archives |= find_or_commit(pending)
    if plan.fleet is not None:
        list(invocation.each(partial(_serve, archives=archives, invocation=invocation), plan.fleet.copies))
        write_index(plan.fleet, storage)
    log.info("plan %s is in place: %d archives", request.physical_id, len(plan.commits))


def read_plan(request: Request, storage: Storage) -> StackPlan:
    """The build plan of a request.

    Raises:
        ArtifactError: the build plan is missing, or is not the one that the request names.
    """
    found = storage.read(request.plan_key, bucket=request.plan_bucket)
    if found is None:
        raise ArtifactError(
            f"the plan s3://{request.plan_bucket}/{request.plan_key} is missing; deploy again to upload it"
        )
    sha256 = hashlib.sha256(found[0]).hexdigest()
    if sha256 != request.physical_id:
        raise ArtifactError(
            f"the plan's SHA-256 is {sha256}, not {request.physical_id}: the asset was changed after the synthesis; "
            "delete the asset (the property PlanKey has its key) from the CDK bootstrap bucket, and deploy again"
        )
    try:
        return StackPlan.parse(found[0])
    except OtherVersionError as error:
        fix = "synthesise the stack again with the version of cdk-triton that deployed the artifact store"
        raise of_other_version("the plan", error, "artifact store", fix) from error
    except DocumentError as error:
        raise ArtifactError(
            f"cdk-triton did not write this plan ({error}); synthesise the stack again, and deploy it with the assets "
            "of that synthesis"
        ) from error


def _archives(commits: Sequence[Commit], assets: str, invocation: Invocation) -> dict[str, StoredObject]:
    """The committed archives, by object key; those that must be built are absent."""
    find_or_commit = partial(_find_or_commit, assets=assets, invocation=invocation)
    return {archive.key: archive for archive in invocation.each(find_or_commit, commits) if archive is not None}


def _find_or_commit(commit: Commit, assets: str, invocation: Invocation) -> StoredObject | None:
    """The committed archive; None if it must be built."""
    archive = committed(commit, invocation.storage)
    if archive is not None or commit.build is not None:
        return archive
    return promote(commit, invocation) if commit.asset is None else commit_asset(commit, assets, invocation)


def _serve(copy: ServedCopy, archives: dict[str, StoredObject], invocation: Invocation) -> None:
    """Copy the committed archive below the multi-model endpoint's prefix, unless it is there."""
    storage, archive = invocation.storage, archives[copy.archive]
    target = storage.head(copy.target)
    if target is None:
        metadata = {ARTIFACT_KEY_METADATA: copy.artifact_key}
        target = copy_if_absent(archive, copy.target, metadata, storage, invocation.turn)
    check_owner(target, copy.artifact_key)
    if target.size != archive.size:
        raise ArtifactError(
            f"the copy {target} has {target.size} bytes, but the archive {archive} has {archive.size}; delete the "
            "copy, and deploy again"
        )
