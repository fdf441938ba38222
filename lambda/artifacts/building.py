"""Makes the products of jobs: every poll decides from locks, builds and jobs what each key still needs.

The module `locks` has the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from protocol.plan import BuildMachine, Commit

from .failure import ArtifactError, NotYetError, with_log_tail
from .invocation import Invocation
from .jobs import is_out_of_sight, latest_end, refreshed
from .locks import BuildState, KeyLock, Ledger
from .products import Archive, BuiltArchive, Product, archives_of
from .rehearsals import ArchiveRehearsal
from .reports import BrokenBuildError, read_failure, was_not_started
from .request import Request
from .starting import Reject, Wanted, resume, start

__all__ = ["build", "build_each"]

GOES_ON = "the build continues; deploy again to wait for its end"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _KeyState:
    """The state of a key: committed, free to be locked again (`lock`), being made (`state`), or failed.

    Attributes:
        product: the product of the key.
        is_committed: whether the store has it.
        lock: the lock to write, in place of the one that was read.
        state: the build in progress.
        failure: why it was not made: reason, log lines and link.
    """

    product: Product
    is_committed: bool = False
    lock: KeyLock | None = None
    state: BuildState | None = None
    failure: tuple[str, Sequence[str], str] | None = None


class _Snapshot(NamedTuple):
    """What one look at the store and the jobs has found.

    Attributes:
        locks: the lock of each key, or None.
        builds: the builds that the locks name, by id.
    """

    locks: Mapping[str, KeyLock | None]
    builds: Mapping[str, BuildState | None]


def build(
    pending: Sequence[Commit],
    rehearsals: Sequence[ArchiveRehearsal],
    builder: BuildMachine | None,
    request: Request,
    invocation: Invocation,
) -> None:
    """Return when the store has all archives and the passes of all rehearsals.

    Args:
        pending: the archives to build.
        rehearsals: the rehearsals without a pass.
        builder: the machine that builds, from the build plan.
        request: the request.
        invocation: this invocation.

    Raises:
        NotYetError: the next poll has to go on.
        ArtifactError: one of them cannot be made; all that were finished are committed.
    """
    archives = [BuiltArchive(each) for each in pending]
    snapshot = _snapshot([*archives, *rehearsals], request, invocation)
    found = _key_states(archives, snapshot, request, invocation)
    _fail_if_one_has(found)
    found += _key_states(rehearsals, snapshot, request, invocation)
    _fail_if_one_has(found)
    _start(found, builder, request, invocation, _fail)
    _require_finished(found)


def build_each(
    pending: Sequence[Commit],
    rehearsals: Sequence[ArchiveRehearsal],
    builder: BuildMachine,
    request: Request,
    invocation: Invocation,
    reject: Reject,
) -> None:
    """As `build`, for archives of which each may fail alone.

    Args:
        pending: the archives to build, without those that were rejected before.
        rehearsals: the rehearsals without a pass.
        builder: the machine that builds.
        request: the request.
        invocation: this invocation.
        reject: takes a product that cannot be made, and the reason.

    Raises:
        NotYetError: the next poll has to go on.
    """
    archives = [BuiltArchive(each) for each in pending]
    snapshot = _snapshot([*archives, *rehearsals], request, invocation)
    found = _key_states(archives, snapshot, request, invocation)
    found += _key_states(rehearsals, snapshot, request, invocation)
    for each in found:
        if each.failure is not None:
            reject(each.product, _failure_text([each]))
    _start(found, builder, request, invocation, reject)
    _require_finished(found)


def _fail(_: Product, reason: str) -> None:
    raise ArtifactError(reason)


def _fail_if_one_has(found: Sequence[_KeyState]) -> None:
    failures = [each for each in found if each.failure is not None]
    if failures:
        raise ArtifactError(_failure_text(failures))


def _snapshot(products: Sequence[Product], request: Request, invocation: Invocation) -> _Snapshot:
    """The locks of products and their builds, looked at once.

    A job that ends between a look at its archive and a look at its rehearsal would have a pass for an archive that is
    not committed.
    """
    ledger = Ledger(invocation.storage)
    keys = [product.key for product in products]
    locks = dict(zip(keys, invocation.each(ledger.lock, keys), strict=True))
    ids = sorted({lock.build for lock in locks.values() if lock is not None})
    return _Snapshot(locks, refreshed(ids, request, ledger, invocation))


def _key_states(
    products: Sequence[Product], snapshot: _Snapshot, request: Request, invocation: Invocation
) -> list[_KeyState]:
    def decide(product: Product) -> _KeyState:
        return _key_state(product, snapshot.locks[product.key], snapshot.builds, request, invocation)

    return list(invocation.each(decide, products))


def _key_state(
    product: Product,
    lock: KeyLock | None,
    builds: Mapping[str, BuildState | None],
    request: Request,
    invocation: Invocation,
) -> _KeyState:
    key = product.key
    if lock is None:
        return _KeyState(product, lock=KeyLock(key, *product.archive, "", 1, None, ""))
    state = builds[lock.build]
    if state is None or state.excludes(key):
        return _KeyState(product, lock=lock)
    if is_out_of_sight(state, invocation):
        until = datetime.fromtimestamp(latest_end(state), UTC).strftime("%Y-%m-%d %H:%M")
        reason = (
            f"the build {state.build} runs on the builder {state.kind!r}, which the artifact store does not have any "
            f"more; deploy the stack of the artifact store with this builder, or deploy again after {until} UTC, when "
            "the build must have ended"
        )
        return _KeyState(product, failure=(reason, [], state.link))
    if state.ended is None:
        return _KeyState(product, lock=lock, state=state)
    try:
        if product.commit(state.build, invocation):
            return _KeyState(product, is_committed=True)
        failure = _failure(product, state, invocation)
    except BrokenBuildError as error:
        failure = f"{error}; deploy again to start another build", [], state.ended.link
    if was_not_started(state.build, key, invocation.storage):
        state = replace(state, ended=replace(state.ended, again=True))
    return _spent(product, lock, state, failure, request)


def _spent(
    product: Product, lock: KeyLock, state: BuildState, failure: tuple[str, Sequence[str], str], request: Request
) -> _KeyState:
    """Decide whether a key whose build ended without its product is made again or fails the request."""
    ended = state.ended
    assert ended is not None  # the caller looked
    reason = with_log_tail(*failure)
    if ended.status == "ABANDONED":
        return _KeyState(product, lock=replace(lock, build=""))
    if ended.again and lock.attempt == 1:
        log.info("the build %s of %s ended with %s and is tried again", state.build, lock.repository, ended.status)
        return _KeyState(product, lock=replace(lock, build="", attempt=2, previous=reason))
    if ended.at < request.started_at:
        return _KeyState(product, lock=replace(lock, build="", attempt=1, previous=reason))
    return _KeyState(product, failure=failure)


def _failure(product: Product, state: BuildState, invocation: Invocation) -> tuple[str, Sequence[str], str]:
    ended = state.ended
    assert ended is not None  # the caller looked
    reported = read_failure(state.build, product.key, invocation.storage)
    return (ended.reason, [], ended.link) if reported is None else (*reported, ended.link)


def _failure_text(failed: Sequence[_KeyState]) -> str:
    """The reason of a request that fails; archives come before rehearsals, which need them."""
    wording = failed[0].product.wording
    failures = {each.product.name: each.failure for each in failed if each.product.wording == wording and each.failure}
    if len(failures) == 1:
        ((name, (reason, lines, link)),) = failures.items()
        return with_log_tail(f"{wording.failed.format(name)}: {reason}", lines, link)
    reasons = "; ".join(f"{name}: {reason}" for name, (reason, _, _) in failures.items())
    (_, _, link) = next(iter(failures.values()))
    return with_log_tail(f"{wording.several_failed.format(len(failures))}: {reasons}", [], link)


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
    unmade = {each.product.archive for each in found if not each.is_committed and each.product.follows is None}
    locked = [each for each in found if each.lock is not None]
    free = [each for each in locked if each.state is None]
    for state in unstarted.values():
        if state.holder != request.physical_id:
            raise NotYetError(f"another deployment is starting the build {state.build}", GOES_ON)
    if not unstarted and not _possible(free, unmade):
        return
    if builder is None:
        raise ArtifactError(
            "the plan has ensembles to build or to rehearse, but does not name a builder; synthesise the stack again"
        )
    for state in unstarted.values():
        ours = _possible([each for each in locked if each.state in (None, state)], unmade)
        with _rejecting(ours, reject):
            resume(state, ours, builder, request, invocation, reject)
    if not unstarted:
        wanted = _possible(free, unmade)
        with _rejecting(wanted, reject):
            start(wanted, builder, request, invocation, reject)
    raise NotYetError("a build was started", GOES_ON)


def _possible(found: Sequence[_KeyState], unmade: AbstractSet[Archive]) -> Wanted:
    """What one job can make: all but the rehearsals of archives that another job has to make first."""
    missing = unmade - archives_of(each.product for each in found)
    return [
        (each.product, each.lock) for each in found if each.lock is not None and each.product.follows not in missing
    ]


@contextmanager
def _rejecting(wanted: Wanted, reject: Reject) -> Iterator[None]:
    """Reject all products of a build that cannot be started."""
    try:
        yield
    except ArtifactError as error:
        for product, _ in wanted:
            reject(product, error.full)


def _require_finished(found: Sequence[_KeyState]) -> None:
    running = [each for each in found if each.state is not None]
    if not running:
        return
    wording = running[0].product.wording
    names = ", ".join(sorted(each.product.name for each in running if each.product.wording == wording))
    links = sorted({each.state.link for each in running if each.state is not None and each.state.link})
    before = [each.lock.previous for each in running if each.lock is not None and each.lock.previous]
    reason = wording.is_made.format(names) + "".join(f" ({link})" for link in links[:1])
    raise NotYetError(reason + "".join(f"; the previous build failed: {why[:300]}" for why in before[:1]), GOES_ON)
