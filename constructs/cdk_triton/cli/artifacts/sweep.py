"""Deletes what can be deleted, although a deployment may begin at any moment.

Reading and deleting are many calls, and a deployment may come between any two of them. These rules make it safe:

1. Nothing is deleted while a stack with artifacts is being deployed. Such a deployment may have verified an artifact
   for a model that it has not created yet, so that no listing shows the use.
2. *Manifests go first.* From then on, no deployment considers the artifact complete. A deployment that comes now
   completes it again: it finds the archive, which is what was committed, and writes its manifest. A crash of this
   program leaves archives without manifests, as a crash of a commit does, and the next `gc` deletes them. The other
   order would leave a manifest without its archive, which is an error for every later deployment.
3. *Then everything is read again.* A deployment that verified manifest and archive must have begun before the manifests
   were deleted. So either its stack is now seen in progress, or it has ended, and its model or index is seen. In both
   cases, the manifests are restored. Otherwise, the archives and multi-model archives are deleted.
4. *Then everything is read a last time.* A deployment that found an archive between the reading and the deletion is
   seen in progress, or by its use. Then everything is restored.
5. Each object is deleted only if it is still the one that was judged (by its ETag).
6. The last call writes the record of the deletion. If it fails, everything is restored.

Restoring removes the delete markers that were set. The bucket is versioned, which is checked first, and keeps deleted
versions for 30 days, so a person can do the same by hand within this time. If a listing fails, the command ends before
anything is deleted, or restores everything: it never acts on partial knowledge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

from cdk_triton.cli.artifacts.aws import Aws, in_parallel
from cdk_triton.cli.artifacts.contents import (
    Contents,
    MultiModelArchive,
    StoredArtifact,
    StoredFile,
    find,
    read_contents,
)
from cdk_triton.cli.artifacts.deletions import Reason, write_record
from cdk_triton.cli.artifacts.garbage import Candidate, candidates, uses
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.cli.artifacts.users import read_users
from cdk_triton.errors import StoreError

__all__ = ["Survey", "Swept", "delete", "survey"]

_Item = TypeVar("_Item")

_RESOURCE_TYPE = "Custom::TritonArtifacts"
_BATCH = 1000  # keys of one DeleteObjects call
_IN_PROGRESS = (
    "CREATE_IN_PROGRESS",
    "ROLLBACK_IN_PROGRESS",
    "UPDATE_IN_PROGRESS",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    "UPDATE_ROLLBACK_IN_PROGRESS",
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
)
"""Operations that may create a model: all but deletions, imports and change sets that were not executed."""


@dataclass(frozen=True)
class Survey:
    """The state at one time.

    Attributes:
        contents: the contents of the bucket.
        used: the users of each object.
        free: the candidates that may be deleted.
        obstacles: why nothing may be deleted now; empty if there is no reason.
    """

    contents: Contents
    used: Mapping[str, tuple[str, ...]]
    free: tuple[Candidate, ...]
    obstacles: tuple[str, ...]


class Swept(NamedTuple):
    """The result of `delete`.

    Attributes:
        deleted: the candidates that are deleted now.
        record: the object key of the record; None where nothing was deleted.
    """

    deleted: tuple[Candidate, ...]
    record: str | None


Look = Callable[[Sequence[Candidate], Collection[str]], Survey]
"""Reads everything again, with the artifacts that are being deleted and the object keys that are deleted already."""


def survey(
    store: Store,
    grace: timedelta,
    going: Sequence[Candidate] = (),
    gone: Collection[str] = frozenset(),
    *,
    keep_last: int = 0,
) -> Survey:
    """Read everything that the decision needs.

    Deployments are listed first, and users afterwards. A deployment that is not in the first list has either ended, so
    that its models and indexes are found, or begins later, so that it notices the deletions.

    Args:
        store: the store.
        grace: how old the youngest part of a candidate has to be.
        going: the candidates that are being deleted. Their users are listed as if no object were deleted yet, and are
            obstacles.
        gone: the object keys of these that are deleted; one that exists again is an obstacle.
        keep_last: how many of each repository or ensemble stay in any case.

    Raises:
        StoreError: an object does not contain what it has to.
        ClientError, BotoCoreError: a listing failed.
    """
    obstacles = [f"the stack {name} is being deployed" for name in _deployments(store.aws)]
    now = datetime.now(UTC)
    contents = read_contents(store)
    obstacles += [f"a deployment has written {key} again" for key in contents.keys if key in gone]
    users = read_users(store.aws)
    used = uses(_with(contents, going), users.references, store.bucket)
    obstacles += [f"{_named(used[f.key][0])} uses {each.name}" for each in going for f in each.files if f.key in used]
    free = candidates(contents, used, now=now, grace=grace, keep_last=keep_last)
    unreadable = [each.fault for each in contents.unreadable]
    return Survey(contents, used, free, (*obstacles, *users.unknown, *unreadable))


def _named(user: str) -> str:
    """A user as `uses` writes it, such as "model late" or "multi-model fleet (current)", with the name in quotes."""
    kind, _, rest = user.partition(" ")
    if kind == "a":
        return user
    named, _, version = rest.removesuffix(")").partition(" (")
    name, space, place = named.partition(" ")
    user = f"the {'published ensemble' if kind == 'published' else kind} {name!r}{space}{place}"
    return f"the {version} version of {user}" if version else user


def delete(store: Store, chosen: Collection[Candidate], look: Look, reason: Reason) -> Swept:
    """Delete the chosen candidates; restore them if one has a user by then, or if no record can be written.

    Args:
        store: the store.
        chosen: what to delete.
        look: `survey` of the store with a grace period.
        reason: why it is garbage, for the record.

    Raises:
        StoreError: there is an obstacle; then everything is restored.
        ClientError, BotoCoreError: as for `survey`.
    """
    _require_versions(store)
    before = look((), ())
    _refuse(before)
    still = frozenset(before.free)
    going = tuple(each for each in chosen if each in still)
    removed = _Removed(store)
    try:
        removed.delete([each.manifest for each in going if each.manifest is not None])
        _refuse(look(going, removed.keys))
        removed.delete([file for each in going for file in each.data])
        _refuse(look(going, removed.keys))
        record = write_record(store, going, removed.markers, reason) if going else None
    except BaseException:  # an interruption too
        removed.restore(going)
        raise
    return Swept(going, record)


class _Removed:
    """The objects that are deleted, to restore them after a fault.

    Attributes:
        markers: the delete markers that were set, by object key.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._s3 = store.aws.client("s3")
        self.markers: dict[str, str] = {}

    @property
    def keys(self) -> frozenset[str]:
        """The object keys that are deleted."""
        return frozenset(self.markers)

    def delete(self, files: Sequence[StoredFile]) -> None:
        """Set delete markers on objects that are still what was judged.

        Raises:
            StoreError: S3 rejected the deletion of an object.
        """
        for batch in _batches(files):
            objects = [{"Key": file.key, "ETag": file.etag} for file in batch]
            answer = self._s3.delete_objects(Bucket=self._store.bucket, Delete={"Objects": objects})
            for each in answer.get("Deleted", []):
                if marker := each.get("DeleteMarkerVersionId"):
                    self.markers[each["Key"]] = marker
            for error in answer.get("Errors", []):
                raise StoreError(
                    f"S3 did not delete s3://{self._store.bucket}/{error['Key']} ({error.get('Code')}: "
                    f"{error.get('Message')}); the objects deleted before it are back"
                )

    def restore(self, going: Sequence[Candidate]) -> None:
        """Remove the markers, archives first.

        A manifest is not restored if its archive is gone, or if a deployment has meanwhile written a different archive,
        which the manifest does not describe.
        """
        manifests = {each.manifest.key: each for each in going if each.manifest is not None}
        self._remove([key for key in self.markers if key not in manifests])
        mine = [key for key in self.markers if key in manifests]
        fits = in_parallel(lambda key: self._describes_what_is_there(manifests[key]), mine)
        self._remove([key for key, does in zip(mine, fits, strict=True) if does])

    def _describes_what_is_there(self, candidate: Candidate) -> bool:
        found = [(file, find(self._store, file.key)) for file in candidate.data]
        return all(there is not None and there.etag == file.etag for file, there in found)

    def _remove(self, keys: Sequence[str]) -> None:
        for batch in _batches(keys):
            objects = [{"Key": key, "VersionId": self.markers[key]} for key in batch]
            answer = self._s3.delete_objects(Bucket=self._store.bucket, Delete={"Objects": objects})
            for error in answer.get("Errors", []):
                raise StoreError(
                    f"S3 did not restore s3://{self._store.bucket}/{error['Key']} ({error.get('Code')}: "
                    f"{error.get('Message')}); remove its delete marker {self.markers[error['Key']]}"
                )


def _refuse(found: Survey) -> None:
    if found.obstacles:
        first, *others = found.obstacles
        more = f" ({len(others)} more {'reason' if len(others) == 1 else 'reasons'})" if others else ""
        raise StoreError(f"nothing is deleted, because {first}{more}; run this again when no deployment is running")


def _require_versions(store: Store) -> None:
    status = store.aws.client("s3").get_bucket_versioning(Bucket=store.bucket).get("Status")
    if status != "Enabled":
        raise StoreError(
            f"the versioning of the bucket {store.bucket} is {status or 'off'}, so a deletion could not be undone: "
            "deploy the store's stack again, which turns the versioning on"
        )


def _with(contents: Contents, going: Sequence[Candidate]) -> Contents:
    """The contents as they were before the deletion."""
    items = {(each.repository, each.key): each for each in contents.artifacts}
    items |= {
        (each.item.repository, each.item.key): each.item for each in going if isinstance(each.item, StoredArtifact)
    }
    copies = {each.file.key: each for each in contents.copies}
    copies |= {each.item.file.key: each.item for each in going if isinstance(each.item, MultiModelArchive)}
    return replace(contents, artifacts=tuple(items.values()), copies=tuple(copies.values()))


def _deployments(aws: Aws) -> Iterator[str]:
    """The stacks with artifacts that are being deployed or rolled back."""
    listed = aws.pages("cloudformation", "list_stacks", "StackSummaries", StackStatusFilter=list(_IN_PROGRESS))
    for stack in listed:
        if _has_artifacts(aws, stack["StackId"]):
            yield stack["StackName"]


def _has_artifacts(aws: Aws, stack: str) -> bool:
    """By its template or by its resources: AWS does not report which of the two templates an update in progress has."""
    body = aws.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    if _RESOURCE_TYPE in (body if isinstance(body, str) else json.dumps(body)):
        return True
    resources = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
    return any(each["ResourceType"] == _RESOURCE_TYPE for each in resources)


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for first in range(0, len(items), _BATCH):
        yield items[first : first + _BATCH]
