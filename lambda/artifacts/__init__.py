"""The handlers of `Custom::TritonArtifacts`: they make the objects of a plan exist in the artifact store.

CloudFormation asks, the CDK provider framework calls `on_event` once and then `is_complete` every 30 seconds.
`on_event` touches nothing; all work is done by `is_complete`, so that the polls are the one retry loop there is.
Standard library and boto3 only: the directory is deployed as it stands.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from .ensure import ensure
from .failure import retry_or_fail
from .invocation import Invocation, running
from .request import Request

__all__ = ["Invocation", "is_complete", "on_event", "poll"]

logging.getLogger(__name__).setLevel(logging.INFO)


def on_event(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Name the resource after its plan. The physical id of a Delete is kept, whatever it is, and nothing is deleted."""
    return Request.parse(event, now=time.time()).accepted()


def is_complete(event: Mapping[str, Any], context: Any) -> dict[str, bool]:
    """Do what is left of the plan while this invocation has time; True when nothing is left."""
    if Request.parse(event, now=time.time()).is_delete:
        return {"IsComplete": True}
    with running(context) as invocation:
        return poll(event, invocation)


def poll(event: Mapping[str, Any], invocation: Invocation) -> dict[str, bool]:
    """`is_complete` with everything that it works with given."""
    request = Request.parse(event, now=invocation.now())
    if request.is_delete:
        return {"IsComplete": True}
    try:
        ensure(request, invocation)
    except Exception as error:
        retry_or_fail(error, waited=invocation.now() - request.started_at)
        return {"IsComplete": False}
    return {"IsComplete": True}
