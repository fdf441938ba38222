"""The rehearsals of a build plan: the server that will serve an archive answers golden requests before it is used.

A rehearsal is one more product of a job. If the job builds the archive, it rehearses it afterwards; otherwise it gets
the committed archive. A pass is an object of its own, written once. It counts for one archive, whose size and ETag it
records. A failure is not stored: the next deployment rehearses again.

A stack that rolls back returns to archives that served before, perhaps long ago, so it neither starts a rehearsal nor
waits for one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from protocol import layout
from protocol.documents import DocumentError, parse_json
from protocol.plan import BuildInput, Commit, PlannedRehearsal, StackPlan
from protocol.rehearsal import RehearsalPass, RehearsedArchive

from .commits import recorded_sha256, stored
from .failure import ArtifactError, NotYetError
from .invocation import Invocation
from .products import Archive, Wording, display_name
from .promotion import promoted_pass
from .reports import MAX_REPORT_BYTES, BrokenBuildError
from .request import Request
from .rollback import rolls_back
from .storage import LostRaceError, Storage, StoredObject, TooLargeError
from .turn import TurnIsOverError

__all__ = ["ArchiveRehearsal", "has_passed", "missing_rehearsals"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArchiveRehearsal:
    """A rehearsal as the product of a job.

    Attributes:
        planned: the rehearsal in the build plan.
        rehearsed: the commit of the archive that is rehearsed.
        store: the store's bucket, from which a job gets a committed archive.
    """

    planned: PlannedRehearsal
    rehearsed: Commit
    store: str
    section = "rehearsals"
    wording = Wording("the rehearsal of {} failed", "{} rehearsals failed", "the rehearsal of {} is running")

    @property
    def key(self) -> str:
        """See `Product`."""
        return self.planned.key

    @property
    def archive(self) -> Archive:
        """See `Product`."""
        return Archive(self.planned.repository, self.planned.artifact_key)

    follows = archive

    @property
    def name(self) -> str:
        """See `Product`."""
        return display_name(self.rehearsed)

    @property
    def pass_key(self) -> str:
        """The object key of the pass."""
        return layout.pass_key(*self.archive, self.key)

    def entry(self, together: Collection[Archive]) -> Mapping[str, Any]:
        """See `Product`."""
        return {
            "key": self.key,
            **self.archive._asdict(),
            "archive": None if self.archive in together else self._archive_path,
            "golden": f"rehearsals/{self.key}.zip",
            "document": self.planned.document,
        }

    def inputs(self, together: Collection[Archive]) -> tuple[BuildInput, ...]:
        """See `Product`."""
        if self.archive in together:
            return self.planned.inputs
        return (*self.planned.inputs, BuildInput(self.store, self.rehearsed.archive, self._archive_path))

    @property
    def _archive_path(self) -> str:
        return f"archives/{self.archive.repository}/{self.archive.artifact_key}.tar.gz"

    def has_passed(self, archive: StoredObject | None, storage: Storage) -> bool:
        """Whether there is a pass for a committed archive; False without one."""
        return archive is not None and has_passed(self.pass_key, archive, storage)

    def commit(self, build: str, invocation: Invocation) -> bool:
        """See `Product`."""
        storage = invocation.storage
        name = f"{layout.build_outputs_prefix(build)}{self.key}/pass.json"
        try:
            found = storage.read(name, most=MAX_REPORT_BYTES)
            if found is None:
                return False
            result = parse_json(found[0])
            rehearsed = {each: result["archive"][each] for each in ("size", "sha256")}
        except (TooLargeError, ValueError, LookupError, TypeError) as error:
            raise BrokenBuildError(f"{name} is not a pass of cdk-triton's build program ({error!r})") from error
        archive = stored(self.rehearsed, storage)
        if archive is None:
            raise BrokenBuildError(f"the archive {self.rehearsed.archive} that was rehearsed is not committed any more")
        known = {"size": archive.size, "sha256": recorded_sha256(self.rehearsed, storage) or rehearsed["sha256"]}
        if rehearsed != known:
            raise BrokenBuildError(f"{archive} is not the archive that the build {build} rehearsed")
        self.write(RehearsedArchive(archive.size, archive.etag, str(rehearsed["sha256"])), result, storage)
        return True

    def write(
        self, archive: RehearsedArchive, result: Mapping[str, Any], storage: Storage, origin: str | None = None
    ) -> None:
        """Write the pass, in place of one for another archive.

        Raises:
            NotYetError: another deployment has written at the same time.
        """
        planned = self.planned
        found = RehearsalPass(
            planned.repository,
            planned.artifact_key,
            planned.key,
            planned.image,
            archive,
            planned.golden,
            planned.document,
            result,
            origin,
        )
        before = storage.read(self.pass_key)
        if before is not None and _counts_for(before[0], archive):
            return
        try:
            storage.write(self.pass_key, found.text(), replacing=None if before is None else before[1])
        except LostRaceError as error:
            raise NotYetError(f"another deployment has written {error}") from error
        log.info("the rehearsal of %s has passed: %s", self.name, self.pass_key)


def has_passed(pass_key: str, archive: StoredObject, storage: Storage) -> bool:
    """Whether there is a pass for an archive."""
    found = storage.read(pass_key)
    return found is not None and _counts_for(found[0], archive)


def missing_rehearsals(
    plan: StackPlan, archives: Mapping[str, StoredObject], request: Request, invocation: Invocation
) -> Sequence[ArchiveRehearsal]:
    """The rehearsals of a build plan that have no pass yet; none if the stack rolls back.

    Args:
        plan: the build plan.
        archives: the committed archives, by object key.
        request: the request.
        invocation: this invocation.

    Raises:
        TurnIsOverError: the time for promoting passes is up; those that were copied are kept.
        ArtifactError: the store promotes passes and cannot rehearse, and the source store does not have one.
    """
    commits = {(commit.repository, commit.artifact_key): commit for commit in plan.commits}
    store = invocation.storage.bucket
    rehearsals = [
        ArchiveRehearsal(each, commits[each.repository, each.artifact_key], store) for each in plan.rehearsals
    ]

    def is_there(rehearsal: ArchiveRehearsal) -> bool:
        return rehearsal.has_passed(archives.get(rehearsal.rehearsed.archive), invocation.storage)

    passed = invocation.each(is_there, rehearsals)
    missing = [each for each, has_pass in zip(rehearsals, passed, strict=True) if not has_pass]
    if not missing or rolls_back(request.stack_id, invocation):
        return []
    if invocation.promotes_from is None:
        return missing
    list(invocation.each(lambda rehearsal: _promote(rehearsal, archives, invocation), missing))
    return []


def _promote(rehearsal: ArchiveRehearsal, archives: Mapping[str, StoredObject], invocation: Invocation) -> None:
    """Copy the pass of the source store, if it is for the archive that was copied from there."""
    if invocation.turn.is_over():
        raise TurnIsOverError("the time for copying passes is up")
    archive = archives.get(rehearsal.rehearsed.archive)
    found = None if archive is None else promoted_pass(rehearsal.rehearsed, archive, rehearsal.pass_key, invocation)
    if archive is None or found is None:
        raise ArtifactError(
            f"the store s3://{invocation.promotes_from} does not have a pass of the rehearsal of {rehearsal.name} that "
            f"this stack needs ({rehearsal.planned.image}, key {rehearsal.key}), and this artifact store has no "
            "builder to rehearse with: first deploy a stack with the same rehearsal, variables of the container, image "
            "and instance type to that store; if a variable differs between the stacks, set its value for both "
            "rehearsals with Rehearsal(environment=...)"
        )
    here = RehearsedArchive(archive.size, archive.etag, found.archive.sha256)
    rehearsal.write(here, found.result, invocation.storage, invocation.promotes_from)


def _counts_for(text: bytes, archive: StoredObject | RehearsedArchive) -> bool:
    try:
        rehearsed = RehearsalPass.parse(text).archive
    except DocumentError as error:
        log.warning("a pass cannot be read, so it does not count: %s", error)
        return False
    return (rehearsed.size, rehearsed.etag) == (archive.size, archive.etag)
