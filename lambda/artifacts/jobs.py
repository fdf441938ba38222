"""Reads the state of builds from the services, and writes it into the builds' documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .builders import Progress
from .failure import NotYetError, with_log_tail
from .invocation import Invocation
from .locks import ABANDONED_SECONDS, BuildState, Ended, Ledger
from .reports import read_failure
from .request import Request
from .storage import LostRaceError

__all__ = ["is_out_of_sight", "latest_end", "refreshed"]

VISIBLE_SECONDS = 5 * 60
"""A service may take this long to list a new job. A job that is missing later is lost."""

QUEUE_SECONDS = 8 * 60 * 60
"""The longest time in CodeBuild's queue (API reference, `queuedTimeoutInMinutes`)."""

LATE_SECONDS = 60 * 60
"""Longer than any service takes to end a job whose time is up."""


def refreshed(
    ids: Sequence[str], request: Request, ledger: Ledger, invocation: Invocation
) -> dict[str, BuildState | None]:
    """The builds of these ids, each in its present state.

    Raises:
        NotYetError: another poll wrote at the same time.
    """
    builds = dict(zip(ids, invocation.each(ledger.build, ids), strict=True))
    try:
        running = [state for state in builds.values() if state is not None and _runs(state)]
        seen = [state for state in running if not is_out_of_sight(state, invocation)]
        for kind in sorted({state.kind for state in seen}):
            listed = [state for state in seen if state.kind == kind]
            builds |= _described(
                listed, invocation.builders[kind].describe([str(s.job) for s in listed]), ledger, invocation
            )
        for build, state in builds.items():
            if state is None:
                continue
            if is_out_of_sight(state, invocation):
                builds[build] = _unless_expired(state, "unknown", ledger, invocation)
            elif _is_abandoned(state, request, invocation.now()):
                builds[build] = _taken_over(state, ledger, invocation)
    except LostRaceError as error:
        raise NotYetError(f"another poll has written {error}") from error
    return builds


def is_out_of_sight(state: BuildState, invocation: Invocation) -> bool:
    """Whether a job may run on a builder that this store no longer has."""
    may_run = state.ended is None and (state.job is not None or state.sent_at is not None)
    return may_run and state.kind not in invocation.builders


def _runs(state: BuildState) -> bool:
    return state.job is not None and state.ended is None


def _described(
    running: Iterable[BuildState], found: Mapping[str, Progress], ledger: Ledger, invocation: Invocation
) -> dict[str, BuildState]:
    return {state.build: _after(state, found.get(str(state.job)), ledger, invocation) for state in running}


def _after(state: BuildState, progress: Progress | None, ledger: Ledger, invocation: Invocation) -> BuildState:
    now, started = invocation.now(), state.started_at or state.created_at
    if progress is None:
        if now - started < VISIBLE_SECONDS:
            return state
        reason = f"the job {state.job} does not exist any more; deploy again to start another"
        # The time of its end is unknown. A request that came after its start has not seen it run, and may build again.
        return ledger.write(state, ended=Ended("VANISHED", started, reason, state.link, again=True))
    if progress.over:
        return ledger.write(state, link=progress.link, ended=_ended(state, progress, invocation))
    # Once: the address of a log is known some time after the start.
    known = state if state.link or not progress.link else ledger.write(state, link=progress.link)
    return _unless_expired(known, progress.status, ledger, invocation)


def latest_end(state: BuildState) -> float:
    """The time after which no job of a build runs any more."""
    return (state.started_at or state.created_at) + state.timeout_minutes * 60 + QUEUE_SECONDS + LATE_SECONDS


def _unless_expired(state: BuildState, status: str, ledger: Ledger, invocation: Invocation) -> BuildState:
    """End a build whose job has exceeded every time limit."""
    limit = latest_end(state)
    if invocation.now() <= limit:
        return state
    reason = (
        f"the job {state.job} still has the status {status}, long after its time limit; deploy again to start another"
    )
    return ledger.write(state, ended=Ended("EXPIRED", limit, reason, state.link, again=True))


def _ended(state: BuildState, progress: Progress, invocation: Invocation) -> Ended:
    # The clocks differ: a build never ends before it was made.
    at = max(invocation.now() if progress.at is None else progress.at, state.created_at)
    reported = read_failure(state.build, None, invocation.storage)
    detail = f": {progress.message}" if progress.message else ""
    ends = f"the job {state.job} ended without a result, with status {progress.status}{detail}"
    if "deploy again" not in detail:
        ends += "; read the log of the job, fix the cause, and deploy again"
    reason, lines = (ends, []) if reported is None else reported
    if not lines and progress.status not in {"SUCCEEDED", "Completed"}:
        lines = invocation.builders[state.kind].log_tail(progress)
    return Ended(progress.status, at, with_log_tail(reason, lines, ""), progress.link, progress.again)


def _is_abandoned(state: BuildState, request: Request, now: float) -> bool:
    return (
        state.job is None
        and state.ended is None
        and state.holder != request.physical_id
        and now - state.worked_at > ABANDONED_SECONDS
    )


def _taken_over(state: BuildState, ledger: Ledger, invocation: Invocation) -> BuildState:
    """End an abandoned build, unless its job exists. The write fails if another invocation works on it again."""
    now, job = invocation.now(), None
    if state.sent_at is not None:
        job = invocation.builders[state.kind].find(state.build, state.created_at)
    if job is not None:
        return ledger.write(state, lease=None, job=job, started_at=now)
    return ledger.write(state, lease=None, ended=Ended("ABANDONED", now, "nobody worked on it", "", again=True))
