"""Builds archives: every poll decides from locks, builds and jobs what each key still needs.

The module `locks` has the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from protocol.plan import BuildMachine, Commit

from .commits import commit_built
from .failure import ArtifactError, NotYetError, with_log_tail
from .invocation import Invocation
from .jobs import is_out_of_sight, latest_end, refreshed
from .locks import BuildState, KeyLock, Ledger
from .reports import BrokenBuildError, read_failure
from .request import Request
from .starting import Reject, Wanted, resume, start
from .storage import StoredObject

__all__ = ["build", "build_each"]

GOES_ON = "the build continues; deploy again to wait for its end"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _KeyState:
    """The state of a key: committed (`archive`), free to be locked again (`lock`), being built, or failed.

    Attributes:
        commit: the commit of the key.
        archive: its committed archive.
        lock: the lock to write, in place of the one that was read.
        state: the build in progress.
        failure: why there is no archive: reason, log lines and link.
    """

    commit: Commit
    archive: StoredObject | None = None
    lock: KeyLock | None = None
    state: BuildState | None = None
    failure: tuple[str, Sequence[str], str] | None = None


def build(
    pending: Sequence[Commit], builder: BuildMachine | None, request: Request, invocation: Invocation
) -> dict[str, StoredObject]:
    """Return the committed archives, by object key, when all of them are there.

    Args:
        pending: the archives to build.
        builder: the machine that builds, from the build plan.
        request: the request.
        invocation: this invocation.

    Raises:
        NotYetError: the next poll has to go on.
        ArtifactError: one of them cannot be built; all that were finished are committed.
    """
    found = _key_states(pending, request, invocation)
    failures = {_display_name(each.commit): each.failure for each in found if each.failure is not None}
    if failures:
        raise ArtifactError(_failure_text(failures))
    _start(found, builder, request, invocation, _fail)
    _require_finished(found)
    return {each.archive.key: each.archive for each in found if each.archive is not None}


def build_each(
    pending: Sequence[Commit], builder: BuildMachine, request: Request, invocation: Invocation, reject: Reject
) -> None:
    """As `build`, for archives of which each may fail alone.

    Args:
        pending: the archives to build, without those that were rejected before.
        builder: the machine that builds.
        request: the request.
        invocation: this invocation.
        reject: takes an archive that cannot be built, and the reason.

    Raises:
        NotYetError: the next poll has to go on.
    """
    found = _key_states(pending, request, invocation)
    for each in found:
        if each.failure is not None:
            reject(each.commit, _failure_text({_display_name(each.commit): each.failure}))
    _start(found, builder, request, invocation, reject)
    _require_finished(found)


def _fail(_: Commit, reason: str) -> None:
    raise ArtifactError(reason)


def _key_states(pending: Sequence[Commit], request: Request, invocation: Invocation) -> list[_KeyState]:
    ledger = Ledger(invocation.storage)
    keys = [commit.artifact_key for commit in pending]
    locks = dict(zip(keys, invocation.each(ledger.lock, keys), strict=True))
    ids = sorted({lock.build for lock in locks.values() if lock is not None})
    builds = refreshed(ids, request, ledger, invocation)

    def decide(commit: Commit) -> _KeyState:
        return _key_state(commit, locks[commit.artifact_key], builds, request, invocation)

    return list(invocation.each(decide, pending))


def _key_state(
    commit: Commit,
    lock: KeyLock | None,
    builds: Mapping[str, BuildState | None],
    request: Request,
    invocation: Invocation,
) -> _KeyState:
    key = commit.artifact_key
    if lock is None:
        return _KeyState(commit, lock=KeyLock(key, commit.repository, "", 1, None, ""))
    state = builds[lock.build]
    if state is None or state.excludes(key):
        return _KeyState(commit, lock=lock)
    if is_out_of_sight(state, invocation):
        until = datetime.fromtimestamp(latest_end(state), UTC).strftime("%Y-%m-%d %H:%M")
        reason = (
            f"the build {state.build} runs on the builder {state.kind!r}, which the artifact store does not have any "
            f"more; deploy the stack of the artifact store with this builder, or deploy again after {until} UTC, when "
            "the build must have ended"
        )
        return _KeyState(commit, failure=(reason, [], state.link))
    if state.ended is None:
        return _KeyState(commit, lock=lock, state=state)
    try:
        archive = commit_built(commit, state.build, invocation)
        if archive is not None:
            return _KeyState(commit, archive=archive)
        failure = _failure(commit, state, invocation)
    except BrokenBuildError as error:
        failure = f"{error}; deploy again to start another build", [], state.ended.link
    return _spent(commit, lock, state, failure, request)


def _spent(
    commit: Commit, lock: KeyLock, state: BuildState, failure: tuple[str, Sequence[str], str], request: Request
) -> _KeyState:
    """Decide whether a key whose build ended without its archive is built again or fails the request."""
    ended = state.ended
    assert ended is not None  # the caller looked
    key, repository, etag = lock.artifact_key, lock.repository, lock.etag
    reason = with_log_tail(*failure)
    if ended.status == "ABANDONED":
        return _KeyState(commit, lock=KeyLock(key, repository, "", lock.attempt, lock.previous, etag))
    if ended.again and lock.attempt == 1:
        log.info("the build %s of %s ended with %s and is tried again", state.build, repository, ended.status)
        return _KeyState(commit, lock=KeyLock(key, repository, "", 2, reason, etag))
    if ended.at < request.started_at:
        return _KeyState(commit, lock=KeyLock(key, repository, "", 1, reason, etag))
    return _KeyState(commit, failure=failure)


def _failure(commit: Commit, state: BuildState, invocation: Invocation) -> tuple[str, Sequence[str], str]:
    ended = state.ended
    assert ended is not None  # the caller looked
    own = read_failure(state.build, commit.artifact_key, invocation.storage)
    return (ended.reason, [], ended.link) if own is None else (*own, ended.link)


def _failure_text(failures: Mapping[str, tuple[str, Sequence[str], str]]) -> str:
    if len(failures) == 1:
        ((ensemble, (reason, lines, link)),) = failures.items()
        return with_log_tail(f"{ensemble} could not be built: {reason}", lines, link)
    reasons = "; ".join(f"{ensemble}: {reason}" for ensemble, (reason, _, _) in failures.items())
    (_, _, link) = next(iter(failures.values()))
    return with_log_tail(f"{len(failures)} ensembles could not be built: {reasons}", [], link)


def _display_name(commit: Commit) -> str:
    """A repository with its platform, because all instance pools of a variant have the same repository."""
    return f"{commit.repository!r} for {commit.platform}"


def _start(
    found: Sequence[_KeyState],
    builder: BuildMachine | None,
    request: Request,
    invocation: Invocation,
    reject: Reject,
) -> None:
    """Start a build of the free keys, or continue a build that an earlier poll of this build plan began.

    Raises:
        NotYetError: a build was started, or cannot be started yet.
        ArtifactError: `reject` raised it, or the build plan does not name a builder.
    """
    unstarted = {each.state.build: each.state for each in found if each.state is not None and each.state.job is None}
    free = [(each.commit, each.lock) for each in found if each.lock is not None and each.state is None]
    for state in unstarted.values():
        if state.holder != request.physical_id:
            raise NotYetError(f"another deployment is starting the build {state.build}", GOES_ON)
    if not unstarted and not free:
        return
    if builder is None:
        raise ArtifactError("the plan has ensembles to build, but does not name a builder; synthesise the stack again")
    for state in unstarted.values():
        ours = [(f.commit, f.lock) for f in found if f.lock is not None and f.state in (None, state)]
        with _rejecting(ours, reject):
            resume(state, ours, builder, request, invocation, reject)
    if not unstarted:
        with _rejecting(free, reject):
            start(free, builder, request, invocation, reject)
    raise NotYetError("a build was started", GOES_ON)


@contextmanager
def _rejecting(wanted: Wanted, reject: Reject) -> Iterator[None]:
    """Reject all archives of a build that cannot be started."""
    try:
        yield
    except ArtifactError as error:
        for commit, _ in wanted:
            reject(commit, error.full)


def _require_finished(found: Sequence[_KeyState]) -> None:
    running = [each for each in found if each.state is not None]
    if not running:
        return
    names = ", ".join(sorted(_display_name(each.commit) for each in running))
    links = sorted({each.state.link for each in running if each.state is not None and each.state.link})
    before = [each.lock.previous for each in running if each.lock is not None and each.lock.previous]
    reason = f"{names} is being built" + "".join(f" ({link})" for link in links[:1])
    raise NotYetError(reason + "".join(f"; the previous build failed: {why[:300]}" for why in before[:1]), GOES_ON)
