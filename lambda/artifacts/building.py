"""Has archives built: decides at every poll, from locks, builds and jobs, what is still to be done for each key.

The rules are those of `locks`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .commits import commit_built
from .failure import ArtifactError, NotYetError, illustrated
from .invocation import Invocation
from .jobs import refreshed
from .locks import BuildState, Ledger, Lock
from .plan import Builder, Commit
from .reports import BrokenBuildError, read_failure
from .request import Request
from .starting import begin, go_on
from .storage import StoredObject

__all__ = ["build"]

GOES_ON = "the build continues; deploy again to attach to it"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Fate:
    """What has become of a key; `archive` where it is committed, `lock` where it may be locked anew.

    Attributes:
        commit: the key's.
        archive: its committed archive.
        lock: the lock that may be written now, in place of the one that was read.
        state: the build that is under way.
        failure: why the key cannot be had: reason, log lines and link.
    """

    commit: Commit
    archive: StoredObject | None = None
    lock: Lock | None = None
    state: BuildState | None = None
    failure: tuple[str, Sequence[str], str] | None = None


def build(
    pending: Sequence[Commit], builder: Builder | None, request: Request, invocation: Invocation
) -> dict[str, StoredObject]:
    """Return the committed archives, by object key, when all of them are there.

    Args:
        pending: what has to be built.
        builder: who builds, as the plan says.
        request: the request.
        invocation: what this invocation works with.

    Raises:
        NotYetError: the next poll has to go on.
        ArtifactError: one of them cannot be built; all that were finished are committed.
    """
    ledger = Ledger(invocation.storage)
    keys = [commit.artifact_key for commit in pending]
    locks = dict(zip(keys, invocation.each(ledger.lock, keys), strict=True))
    ids = sorted({lock.build for lock in locks.values() if lock is not None})
    builds = refreshed(ids, request, ledger, invocation)

    def decide(commit: Commit) -> _Fate:
        return _fate(commit, locks[commit.artifact_key], builds, request, invocation)

    fates = list(invocation.each(decide, pending))
    failures = {fate.commit.repository: fate.failure for fate in fates if fate.failure is not None}
    if failures:
        raise ArtifactError(_told(failures))
    _start(fates, builder, request, invocation)
    _wait(fates)
    return {fate.archive.key: fate.archive for fate in fates if fate.archive is not None}


def _fate(
    commit: Commit,
    lock: Lock | None,
    builds: Mapping[str, BuildState | None],
    request: Request,
    invocation: Invocation,
) -> _Fate:
    key = commit.artifact_key
    if lock is None:
        return _Fate(commit, lock=Lock(key, commit.repository, "", 1, None, ""))
    state = builds[lock.build]
    if state is None or state.excludes(key):
        return _Fate(commit, lock=lock)
    if state.ended is None:
        return _Fate(commit, lock=lock, state=state)
    try:
        archive = commit_built(commit, state.build, invocation)
        if archive is not None:
            return _Fate(commit, archive=archive)
        failure = _failure(commit, state, invocation)
    except BrokenBuildError as error:
        failure = str(error), [], state.ended.link
    return _spent(commit, lock, state, failure, request)


def _spent(
    commit: Commit, lock: Lock, state: BuildState, failure: tuple[str, Sequence[str], str], request: Request
) -> _Fate:
    """Whether a key whose build has not made it is built again or fails the request."""
    ended = state.ended
    assert ended is not None  # the caller looked
    key, repository, etag = lock.artifact_key, lock.repository, lock.etag
    reason = illustrated(*failure)
    if ended.status == "ABANDONED":
        return _Fate(commit, lock=Lock(key, repository, "", lock.attempt, lock.previous, etag))
    if ended.again and lock.attempt == 1:
        log.info("the build %s of %s ended with %s and is tried once more", state.build, repository, ended.status)
        return _Fate(commit, lock=Lock(key, repository, "", 2, reason, etag))
    if ended.at < request.started_at:
        return _Fate(commit, lock=Lock(key, repository, "", 1, reason, etag))
    return _Fate(commit, failure=failure)


def _failure(commit: Commit, state: BuildState, invocation: Invocation) -> tuple[str, Sequence[str], str]:
    ended = state.ended
    assert ended is not None  # the caller looked
    own = read_failure(state.build, commit.artifact_key, invocation.storage)
    return (ended.reason, [], ended.link) if own is None else (*own, ended.link)


def _told(failures: Mapping[str, tuple[str, Sequence[str], str]]) -> str:
    if len(failures) == 1:
        ((repository, (reason, lines, link)),) = failures.items()
        return illustrated(f"{repository} could not be built: {reason}", lines, link)
    reasons = "; ".join(f"{repository}: {reason}" for repository, (reason, _, _) in failures.items())
    (_, _, link) = next(iter(failures.values()))
    return illustrated(f"{len(failures)} ensembles could not be built: {reasons}", [], link)


def _start(fates: Sequence[_Fate], builder: Builder | None, request: Request, invocation: Invocation) -> None:
    """Start what may be started, or go on with what an earlier poll of this plan began.

    Raises:
        NotYetError: something was started, or cannot be yet.
        ArtifactError: it cannot be started.
    """
    unstarted = {fate.state.build: fate.state for fate in fates if fate.state is not None and fate.state.job is None}
    free = [(fate.commit, fate.lock) for fate in fates if fate.lock is not None and fate.state is None]
    for state in unstarted.values():
        if state.holder != request.physical_id:
            raise NotYetError(f"another deployment is starting the build {state.build}", GOES_ON)
    if not unstarted and not free:
        return
    if builder is None:
        raise ArtifactError("the plan has ensembles to build and names no builder; synthesise it again")
    for state in unstarted.values():
        ours = [(f.commit, f.lock) for f in fates if f.lock is not None and f.state in (None, state)]
        go_on(state, ours, builder, request, invocation)
    if not unstarted:
        begin(free, builder, request, invocation)
    raise NotYetError("a build was started", GOES_ON)


def _wait(fates: Sequence[_Fate]) -> None:
    """Wait while a job runs.

    Raises:
        NotYetError: it is so.
    """
    running = [fate for fate in fates if fate.state is not None]
    if not running:
        return
    names = ", ".join(sorted(fate.commit.repository for fate in running))
    links = sorted({fate.state.link for fate in running if fate.state is not None and fate.state.link})
    before = [fate.lock.previous for fate in running if fate.lock is not None and fate.lock.previous]
    reason = f"{names} is being built" + "".join(f" ({link})" for link in links[:1])
    raise NotYetError(reason + "".join(f"; the build before it failed: {why[:300]}" for why in before[:1]), GOES_ON)
