"""The provider of the store's custom resources, which answers the requests of CloudFormation.

CloudFormation invokes `provide` asynchronously ("Using AWS Lambda with CloudFormation"). It starts an execution of the
waiter, a state machine that calls `is_complete` until it is done or fails, and then once more with the outcome. That
call sends the outcome to CloudFormation.

No function waits for another one. So a request takes one concurrent execution of the account, and only while there is
something to do. A lack of free executions fails nothing: Lambda keeps an asynchronous event that it throttles for up to
six hours ("Asynchronous invocation"), and Step Functions repeats a call that was throttled.

docs/contributing/architecture.md compares it with the CDK's provider framework.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from . import endpoint_wait
from .clients import client
from .failure import PROPAGATION_SECONDS, ArtifactError, is_transient, reason_of, with_log_group
from .request import Request

__all__ = ["accept", "answer_outcome", "has_outcome", "provide", "states"]

SECONDS = 10
"""The timeout of one attempt to answer CloudFormation. Step Functions and Lambda repeat a failed one."""

_PAUSE_SECONDS = 5
"""Between two attempts to start the waiter."""

log = logging.getLogger(__name__)


def accept(event: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """The physical id of a request's resource, and when the work on it begins.

    Raises:
        ArtifactError: a property is missing or has the wrong form.
    """
    if endpoint_wait.is_wait(event):
        return endpoint_wait.accepted(event, now=now)
    return Request.parse(event, now=now).accepted()


def provide(event: Mapping[str, Any], _context: object) -> None:
    """Accept a request of CloudFormation, and start the waiter.

    A request whose waiter cannot be started fails with the reason. Without an answer, CloudFormation would wait for an
    hour.
    """
    try:
        request = {**event, **accept(event, now=time.time())}
    except ArtifactError as error:
        _answer(event, error.full)
        return
    if request["RequestType"] == "Delete" and not endpoint_wait.is_wait(event):
        _answer(request, None)  # archives stay
        return
    try:
        _start_waiter(request)
    except Exception as error:
        log.exception("the waiter does not start")
        _answer(request, f"the store's waiter does not start: {error}; remove this cause, and try again")


def states() -> Any:
    """The client that starts waiters. All its attempts, and the time for propagation, fit into one invocation."""
    return client("stepfunctions", read_seconds=10)


def _start_waiter(request: Mapping[str, Any]) -> None:
    """Start the waiter. The permission to start it may be so new that IAM has not propagated it yet."""
    service, began = states(), time.monotonic()
    while True:
        try:
            # Lambda may deliver an asynchronous event twice: an execution has the name of its request.
            service.start_execution(
                stateMachineArn=os.environ["WAITER"], name=request["RequestId"], input=json.dumps(request)
            )
        except service.exceptions.ExecutionAlreadyExists:
            log.info("the request %s came twice", request["RequestId"])
        except Exception as error:
            waited = time.monotonic() - began
            if waited > PROPAGATION_SECONDS or not is_transient(error, waited):
                raise
            time.sleep(_PAUSE_SECONDS)
            continue
        return


def has_outcome(event: Mapping[str, Any]) -> bool:
    """Whether an event of the waiter contains the outcome of a request."""
    return "Failure" in event or bool(event.get("Polled", {}).get("IsComplete"))


def answer_outcome(event: Mapping[str, Any]) -> None:
    """Send the outcome of the waiter to CloudFormation."""
    _answer(event, reason_of(event["Failure"]) if "Failure" in event else None)


def _answer(event: Mapping[str, Any], failure: str | None) -> None:
    """Send the result of a request to CloudFormation ("Custom resource response objects")."""
    answer = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": "" if failure is None else with_log_group(failure),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "PhysicalResourceId": event.get("PhysicalResourceId") or event["RequestId"],
    }
    # The URL is signed for no content type.
    request = HttpRequest(  # noqa: S310  CloudFormation's own URL
        event["ResponseURL"], json.dumps(answer).encode(), {"Content-Type": ""}, method="PUT"
    )
    with urlopen(request, timeout=SECONDS):  # noqa: S310
        log.info("answered %s of %s: %s", event["RequestType"], event["LogicalResourceId"], failure or answer["Status"])
