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
from .failure import judge
from .request import Request
from .storage import Storage

__all__ = ["is_complete", "on_event"]

logging.getLogger(__name__).setLevel(logging.INFO)


def on_event(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Name the resource after its plan. The physical id of a Delete is kept, whatever it is, and nothing is deleted."""
    return Request.parse(event, now=time.time()).accepted()


def is_complete(event: Mapping[str, Any], context: Any) -> dict[str, bool]:
    """Do what is left of the plan while this invocation has time; True when nothing is left."""
    request = Request.parse(event, now=time.time())
    if request.is_delete:
        return {"IsComplete": True}
    try:
        ensure(request, Storage.of_environment(), context.get_remaining_time_in_millis)
    except Exception as error:
        judge(error, waited=time.time() - request.started_at)
        return {"IsComplete": False}
    return {"IsComplete": True}
