"""The handlers of the store's custom resources.

`Custom::TritonArtifacts` makes the objects of a build plan exist in the artifact store. `Custom::TritonEndpointWait`
holds a deployment until an endpoint can be changed. CloudFormation calls `provide`, and the state machine that this
starts calls `is_complete` until it is done. The state machine of a publisher calls it for its builds in the same way.
`is_complete` does all the work, so the polls are the only retry loop. The directory is deployed as it is, so it needs
only the standard library and boto3.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .endpoint_wait import is_settled, is_wait
from .ensure import ensure
from .failure import LAST_SECONDS, retry_or_fail
from .invocation import Invocation, running
from .platform_change import Compared, compare
from .provider import accept, answer_outcome, has_outcome, provide
from .published_builds import build_batch, is_build
from .request import Request
from .turn import TurnIsOverError

__all__ = ["Invocation", "is_complete", "on_event", "poll", "provide"]

POLL_SECONDS = 30
"""Seconds between two polls of a build. It takes minutes, and each poll calls S3 and the builder's service."""

YIELD_SECONDS = 2
"""Seconds between two polls that copy for 20 seconds each. Step Functions repeats a throttled call after 5 seconds on
average. So if ten requests wait, one of them calls every half second and gets the next turn."""

DONE = {"IsComplete": True}

logging.getLogger(__name__).setLevel(logging.INFO)


def on_event(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Name the resource after its build plan. A Delete keeps its physical id, whatever it is, and deletes nothing."""
    return accept(event, now=time.time())


def is_complete(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Do what is left of the build plan while this poll has time.

    If the event contains the outcome of all polls, it answers CloudFormation instead.

    Returns:
        `IsComplete`: whether nothing is left; if not, `Seconds`: the pause before the next poll.
    """
    if is_build(event):
        with running(context) as invocation:
            return build_batch(event, invocation)
    if has_outcome(event):
        answer_outcome(event)
        return DONE
    if is_wait(event):
        return DONE if is_settled(event, now=time.time()) else _poll_again(POLL_SECONDS)
    if Request.parse(event, now=time.time()).is_delete:
        return DONE
    with running(context) as invocation:
        return poll(event, invocation)


def poll(event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
    """`is_complete` with its dependencies as arguments."""
    request = Request.parse(event, now=invocation.now())
    if request.is_delete:
        return DONE
    is_last = invocation.now() - request.started_at > LAST_SECONDS
    working, compared = replace(invocation, is_last=is_last), Compared.parse(event)
    try:
        compared = compare(request, compared, working)
        if compared is not None and not compared.is_done:
            return _poll_again(YIELD_SECONDS, compared)
        ensure(request, working)
    except Exception as error:
        retry_or_fail(error, waited=invocation.now() - request.started_at)
        return _poll_again(YIELD_SECONDS if isinstance(error, TurnIsOverError) else POLL_SECONDS, compared)
    return DONE


def _poll_again(seconds: int, compared: Compared | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = {"IsComplete": False, "Seconds": seconds}
    return answer if compared is None else {**answer, "Compared": compared.document()}
