"""`Custom::TritonEndpointWait`: holds a deployment until SageMaker has finished what it does to an endpoint.

While Application Auto Scaling changes the number of instances, an endpoint is `Updating`, and SageMaker answers
UpdateEndpoint and DeleteEndpoint with "Cannot update in-progress endpoint". CloudFormation does not wait for that. So
a scaled endpoint has two of these resources:

* one that depends on the endpoint, and so is deleted before it. It waits when it is deleted. Its physical id is the
  endpoint's name;
* one that the endpoint depends on, and so is changed before it. It waits when it is changed. CloudFormation generates
  the endpoint's name later, so this one reads it from the other's physical id. When this one is created, the other one
  does not exist yet, so there is no wait.

A wait never fails a deployment. When its time is up, the deployment goes on, and SageMaker may reject the change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .clients import client
from .failure import PATIENCE_SECONDS, error_code

__all__ = ["ENDPOINT_WAIT", "accepted", "is_settled", "is_wait"]

ENDPOINT_WAIT = "Custom::TritonEndpointWait"

BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""The states that end by themselves (API reference, DescribeEndpoint, `EndpointStatus`; `Deleting` needs no wait)."""

_MISSING = "ValidationException", "ValidationError"
"""The errors of SageMaker and CloudFormation for an endpoint, stack or resource that does not exist."""

log = logging.getLogger(__name__)


def is_wait(event: Mapping[str, Any]) -> bool:
    """Whether a request is for a `Custom::TritonEndpointWait`."""
    return event.get("ResourceType") == ENDPOINT_WAIT


def accepted(event: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """The answer of `on_event`: the physical id, and when the wait begins."""
    properties = event.get("ResourceProperties") or {}
    kept = event.get("PhysicalResourceId")
    name = kept if event["RequestType"] == "Delete" else properties.get("EndpointName", kept)
    return {"PhysicalResourceId": name or event["RequestId"], "StartedAt": now}


def is_settled(event: Mapping[str, Any], *, now: float) -> bool:
    """Whether the deployment can continue."""
    waited = now - float(event.get("StartedAt", now))
    try:
        name = _endpoint(event)
        if name is None:
            return True
        status = _sagemaker().describe_endpoint(EndpointName=name)["EndpointStatus"]
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and error_code(error) in _MISSING:
            return True
        log.warning("cannot read the endpoint's state: %s", error)
        return waited > PATIENCE_SECONDS or (isinstance(error, ClientError) and "AccessDenied" in error_code(error))
    if status not in BUSY:
        return True
    log.info("endpoint %s is %s", name, status)
    return waited > PATIENCE_SECONDS


def _endpoint(event: Mapping[str, Any]) -> str | None:
    """The name of the endpoint that the request waits for; None if there is nothing to wait for."""
    properties, kind = event.get("ResourceProperties") or {}, event["RequestType"]
    if "EndpointName" in properties:
        return str(event["PhysicalResourceId"]) if kind == "Delete" else None
    if kind != "Update":
        return None
    other = _cloudformation().describe_stack_resource(
        StackName=event["StackId"], LogicalResourceId=properties["NameIsIdOf"]
    )
    name: str | None = other["StackResourceDetail"].get("PhysicalResourceId")
    return name


def _sagemaker() -> Any:
    return client("sagemaker", attempts=3, read_seconds=20)


def _cloudformation() -> Any:
    return client("cloudformation", attempts=3, read_seconds=20)
