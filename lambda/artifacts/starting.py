"""Starts builds: takes locks, brings the inputs, fixes the members, starts the job.

Each poll continues from the point that the last one reached.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from protocol.plan import BuildMachine

from .builders import Job
from .failure import ArtifactError, NotYetError, QuotaUsedUpError, is_rejection, is_transient
from .inputs import copy_inputs, write_build_plan
from .invocation import Invocation
from .locks import LEASE_SECONDS, UNSURE_SECONDS, BuildState, Ended, KeyLock, Lease, Ledger
from .products import Product, archives_of
from .request import Request
from .storage import LostRaceError

__all__ = ["Reject", "resume", "start"]

QUOTA_SECONDS = 8 * 60 * 60
"""How long a request waits for other jobs that use up the quota; CodeBuild's queue holds a build for as long."""

log = logging.getLogger(__name__)

Wanted = Sequence[tuple[Product, KeyLock]]
"""The products that can be locked, each with the lock that was read: a lock of this build, or a spent one."""

Reject = Callable[[Product, str], None]
"""Takes a product that cannot be made, and the reason. If it raises, the others are not made either."""


def start(wanted: Wanted, builder: BuildMachine, request: Request, invocation: Invocation, reject: Reject) -> None:
    """Make a build for these products and start it.

    Raises:
        NotYetError: the next poll continues.
        ArtifactError: the build cannot be started.
    """
    if request.build_image is None:
        raise ArtifactError(
            "the property BuildImage is missing, but the plan has ensembles to build or to rehearse; synthesise the "
            "stack again"
        )
    invocation.builders[builder.kind]  # before any write, check that the store has the builder
    now = invocation.now()
    state = BuildState(
        build=f"cdk-triton-{invocation.token()}",
        holder=request.physical_id,
        kind=builder.kind,
        image=request.build_image,
        timeout_minutes=builder.timeout_minutes,
        instance_type=builder.instance_type,
        volume_gb=builder.volume_gb,
        created_at=now,
        worked_at=now,
    )
    resume(state, wanted, builder, request, invocation, reject)


def resume(
    state: BuildState,
    wanted: Wanted,
    builder: BuildMachine,
    request: Request,
    invocation: Invocation,
    reject: Reject,
) -> None:
    """Take the lease of a build without a job, and do the remaining steps until it has one.

    Raises:
        NotYetError: the next poll continues.
        ArtifactError: the job cannot be started; the build has ended.
    """
    now = invocation.now()
    if state.lease is not None and state.lease.until > now:
        raise NotYetError(f"another poll is starting the build {state.build}")
    lease = Lease(invocation.token(), now + LEASE_SECONDS)
    work = _Work(Ledger(invocation.storage), state, request, invocation)
    try:
        work.change(lease=lease, worked_at=now)
        try:
            if work.state.members is None:
                work.prepare(wanted, builder, reject)
            work.send()
        except ArtifactError as error:
            work.change(lease=None, ended=Ended("NOT_STARTED", invocation.now(), str(error), "", again=False))
            raise
        except Exception:
            work.change(lease=None)
            raise
    except LostRaceError as error:
        raise NotYetError(f"another deployment was faster: {error}") from error


class _Work:
    """A build whose lease this invocation holds."""

    def __init__(self, ledger: Ledger, state: BuildState, request: Request, invocation: Invocation) -> None:
        self.ledger = ledger
        self.state = state
        self.request = request
        self.invocation = invocation

    def change(self, **changes: Any) -> None:
        """Write the changed build.

        Raises:
            LostRaceError: another invocation has the lease now.
        """
        self.state = self.ledger.write(self.state, **changes)

    def prepare(self, wanted: Wanted, builder: BuildMachine, reject: Reject) -> None:
        """Take the locks, copy the inputs, reject products that lack one, write `plan.json`, and fix the members."""
        build = self.state.build
        # Two directories may have the same content, thus one key: it is built once, and committed under both names.
        by_key = {product.key: (product, lock) for product, lock in wanted}
        for _, (product, lock) in sorted(by_key.items()):
            if lock.build != build and not self.ledger.take(replace(lock, build=build)):
                raise NotYetError(f"another deployment builds {product.archive.repository}")
        products = [product for product, _ in by_key.values()]
        together = archives_of(product for product, _ in wanted)
        faults = copy_inputs(build, builder, products, together, self.request.plan_bucket, self.invocation)
        faulty = [product for product, _ in wanted if product.key in faults]
        for product in faulty:
            reject(product, faults[product.key])
        not_made = archives_of(faulty)
        complete = [each for each in products if each.key not in faults and each.follows not in not_made]
        if not complete:
            raise ArtifactError("; ".join(faults.values()))
        members = write_build_plan(build, builder, complete, together, self.invocation)
        self.change(members=members)

    def send(self) -> None:
        """Start the job, unless an earlier attempt did."""
        state, now = self.state, self.invocation.now()
        builder = self.invocation.builders[state.kind]
        earlier = state.sent_at
        job = None if earlier is None else builder.find(state.build, state.created_at)
        if job is None:
            self.change(sent_at=now)
            try:
                job = builder.start(
                    Job(state.build, state.image, state.timeout_minutes, state.instance_type, state.volume_gb)
                )
            except (ArtifactError, QuotaUsedUpError, ClientError, ParamValidationError) as error:
                self._rejected(error, earlier)
                raise
        self.change(lease=None, job=job, started_at=now)
        log.info("the build %s of %s runs as %s", state.build, ", ".join(state.members or ()), job)

    def _rejected(self, error: Exception, earlier: float | None) -> None:
        """Raise the matching error if the service rejected the job.

        Raises:
            ArtifactError: the job does not exist, and never will.
            NotYetError: the job may exist, because an earlier answer was lost.
        """
        if isinstance(error, ClientError) and not is_rejection(error):
            return
        now = self.invocation.now()
        self.change(sent_at=earlier)
        waits_since = max(self.state.created_at, self.request.started_at)  # without the time between two requests
        if isinstance(error, QuotaUsedUpError) and now - waits_since > QUOTA_SECONDS:
            raise ArtifactError(f"the build has waited for {QUOTA_SECONDS // 3600} hours: {error}") from error
        if is_transient(error, now - self.request.started_at):
            return
        if earlier is not None and now - earlier <= UNSURE_SECONDS:
            raise NotYetError(f"an earlier answer about the job was lost; now: {error}") from error
        if not isinstance(error, ArtifactError):
            raise ArtifactError(f"the build could not be started: {type(error).__name__}: {error}") from error
