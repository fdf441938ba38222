"""What tests of the build step do, in a line each."""

from __future__ import annotations

from build_model.cloud import Cloud, Poll
from build_model.faults import Fault
from build_model.stack import Stack

__all__ = ["ONE", "OTHER_REQUESTS", "PROCESSING", "REHEARSED", "TWO", "WITH_AN_ASSET", "deploy", "job", "poll"]

ONE, TWO, WITH_AN_ASSET, PROCESSING, REHEARSED, OTHER_REQUESTS = 0, 1, 2, 4, 6, 7
"""Numbers of plans: one ensemble; two; two and an archive that is not built; two by Processing; one ensemble and an
archive that is not built, both rehearsed; the same ensemble, rehearsed with other requests, and another one."""


def deploy(cloud: Cloud, plan: int, stack: Stack | None = None) -> Stack:
    """A stack whose deployment has begun."""
    stack = stack or Stack(cloud)
    stack.deploy(cloud.plans[plan])
    return stack


def poll(stack: Stack, fault: Fault | None = None) -> Poll:
    """One poll, and half a minute."""
    assert stack.operation is not None
    result = stack.cloud.poll(stack.operation.event, fault)
    stack.cloud.tick(30)
    return result


def job(cloud: Cloud) -> str:
    """The one job that runs."""
    (found,) = cloud.live_jobs()
    return found
