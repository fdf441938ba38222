"""`Custom::TritonEndpointWait`: which requests wait for an endpoint, and for how long."""

from __future__ import annotations

import pytest
from botocore.exceptions import ReadTimeoutError

import artifacts
from artifacts import endpoint_wait
from memory_aws import refusal
from waiting_account import NAME, Account

HOUR = 60 * 60


@pytest.mark.parametrize("status", ["Creating", "Updating", "SystemUpdating", "RollingBack"])
def test_an_endpoint_that_is_busy_is_waited_for(account: Account, status: str) -> None:
    account.becomes(status)

    assert not account.may_change()
    assert not account.may_go()


@pytest.mark.parametrize("status", ["InService", "Failed", "OutOfService", "UpdateRollbackFailed", "Deleting"])
def test_a_state_that_does_not_end_is_not_waited_for(account: Account, status: str) -> None:
    account.becomes(status)

    assert account.may_change()
    assert account.may_go()


def test_a_wait_ends_before_cloudformation_gives_up(account: Account) -> None:
    account.becomes("Updating")

    assert account.may_change(since=HOUR)
    assert account.may_go(since=HOUR)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (refusal("ThrottlingException"), True),
        (refusal("InternalFailure", status=500), True),
        (ReadTimeoutError(endpoint_url="sagemaker"), True),
        (refusal("AccessDeniedException"), False),
    ],
    ids=["throttled", "broken", "no answer", "not allowed"],
)
def test_what_cannot_be_seen_is_waited_for_while_that_may_pass(account: Account, fault: Exception, waits: bool) -> None:
    def refuse(**_: object) -> None:
        raise fault

    for client in (endpoint_wait._sagemaker(), endpoint_wait._cloudformation()):
        client.meta.events.register("before-call", refuse)

    assert account.may_change() is not waits
    assert account.may_go() is not waits
    assert account.may_change(since=HOUR)
    assert account.may_go(since=HOUR)


def test_an_endpoint_that_is_not_there_is_not_waited_for(account: Account) -> None:
    account.becomes("Updating")

    assert account.may_change(waits="NotYetThere")
    assert account.may_go("another")


def test_the_other_requests_do_not_wait(account: Account) -> None:
    account.becomes("Updating")
    changed = {"EndpointConfigName": "next", "NameIsIdOf": "Waits"}

    assert account.settles("Create", changed)
    assert account.settles("Delete", changed, PhysicalResourceId="r")
    assert account.settles("Create", {"EndpointName": NAME})
    assert account.settles("Update", {"EndpointName": NAME}, PhysicalResourceId=NAME)


def test_the_physical_id_is_the_name_of_the_endpoint() -> None:
    event = {
        "RequestType": "Update",
        "ResourceType": "Custom::TritonEndpointWait",
        "RequestId": "r",
        "PhysicalResourceId": "before",
        "ResourceProperties": {"EndpointName": NAME},
    }
    assert artifacts.on_event(event, None)["PhysicalResourceId"] == NAME
    assert artifacts.on_event(event | {"RequestType": "Delete"}, None)["PhysicalResourceId"] == "before"
