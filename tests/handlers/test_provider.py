"""What the provider takes from CloudFormation, and what CloudFormation gets for an answer."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

import artifacts
from artifacts import clients, provider

if TYPE_CHECKING:
    from golden_messages import Messages

ARTIFACTS, WAIT = "Custom::TritonArtifacts", "Custom::TritonEndpointWait"
ANSWER_BYTES = 4096
"""The largest answer that CloudFormation takes."""


class CloudFormation:
    """Takes answers at a pre-signed URL, and sends requests.

    Attributes:
        answers: the body of each answer.
        types: the content type of each; the URL is signed for none.
    """

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.types: list[str] = []
        outer = self

        class Url(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert len(body) <= ANSWER_BYTES
                outer.answers.append(json.loads(body))
                outer.types.append(self.headers["Content-Type"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Url)
        self.states = boto3.client("stepfunctions", region_name="us-east-1")
        self.waiter = self.states.create_state_machine(
            name="Waiter",
            definition=json.dumps({"StartAt": "Poll", "States": {"Poll": {"Type": "Succeed"}}}),
            roleArn="arn:aws:iam::123456789012:role/r",
        )["stateMachineArn"]

    def event(self, kind: str, *, resource: str = ARTIFACTS, **more: Any) -> dict[str, Any]:
        own = {"PlanBucket": "b", "PlanKey": "k", "PlanSha256": "0" * 64}
        return {
            "RequestType": kind,
            "ResourceType": resource,
            "RequestId": "request-1",
            "StackId": "stack",
            "LogicalResourceId": "Delivery",
            "ResponseURL": f"http://127.0.0.1:{self.server.server_port}/?Signature=s",
            "ResourceProperties": own if resource == ARTIFACTS else {"EndpointName": "search"},
            **more,
        }

    def started(self) -> list[dict[str, Any]]:
        """What each execution of the waiter was started with."""
        found = self.states.list_executions(stateMachineArn=self.waiter)["executions"]
        describe = self.states.describe_execution
        return [json.loads(describe(executionArn=each["executionArn"])["input"]) for each in found]


@pytest.fixture(name="formation")
def _formation(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "testing")
    with mock_aws():
        clients.client.cache_clear()
        formation = CloudFormation()
        monkeypatch.setenv("WAITER", formation.waiter)
        thread = threading.Thread(target=formation.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield formation
        formation.server.shutdown()
        formation.server.server_close()
        thread.join()
    clients.client.cache_clear()


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_request_is_handed_to_the_waiter_and_not_answered_yet(formation: CloudFormation, kind: str) -> None:
    event = formation.event(kind, PhysicalResourceId="before")

    artifacts.provide(event, None)

    (given,) = formation.started()
    assert given.items() >= (event | {"PhysicalResourceId": "0" * 64}).items()
    assert given["StartedAt"] > 0
    assert formation.answers == []


def test_a_request_that_comes_twice_is_worked_on_once(formation: CloudFormation) -> None:
    for _ in range(2):
        artifacts.provide(formation.event("Create"), None)

    assert len(formation.started()) == 1
    assert formation.answers == []


def test_a_delete_of_archives_is_answered_at_once_and_keeps_its_name(formation: CloudFormation) -> None:
    artifacts.provide(formation.event("Delete", PhysicalResourceId="of-an-older-version"), None)

    assert formation.started() == []
    assert formation.answers == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "StackId": "stack",
            "RequestId": "request-1",
            "LogicalResourceId": "Delivery",
            "PhysicalResourceId": "of-an-older-version",
        }
    ]


def test_the_delete_of_a_wait_waits(formation: CloudFormation) -> None:
    artifacts.provide(formation.event("Delete", resource=WAIT, PhysicalResourceId="search"), None)

    assert [given["PhysicalResourceId"] for given in formation.started()] == ["search"]
    assert formation.answers == []


def test_a_request_that_is_rejected_is_answered_at_once(formation: CloudFormation) -> None:
    artifacts.provide(formation.event("Create", ResourceProperties={"PlanSha256": "abc"}), None)

    (answer,) = formation.answers
    assert answer["Status"] == "FAILED"
    assert "PlanSha256" in answer["Reason"]
    assert answer["PhysicalResourceId"] == "request-1"  # CloudFormation refuses an answer without one
    assert formation.started() == []


class Clock:
    """Time that passes while the provider sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def time(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture(name="clock")
def _clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(provider, "time", clock)
    return clock


DENIED = {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}


@contextmanager
def start_fails(parsed: dict[str, Any], times: int) -> Iterator[list[str]]:
    """Let Step Functions reject the first calls of StartExecution."""
    rejected: list[str] = []

    def reject(**_: Any) -> tuple[Any, dict[str, Any]] | None:
        if len(rejected) == times:
            return None
        rejected.append("StartExecution")
        response = AWSResponse("https://states.example", 400, HTTPHeaders(), Mock())
        return response, {**parsed, "ResponseMetadata": {"HTTPStatusCode": 400}}

    events = provider.states().meta.events
    events.register_first("before-call.sfn.StartExecution", reject)
    try:
        yield rejected
    finally:
        events.unregister("before-call.sfn.StartExecution", reject)


def test_a_permission_that_is_not_propagated_yet_is_awaited(formation: CloudFormation, clock: Clock) -> None:
    with start_fails(DENIED, times=20):
        artifacts.provide(formation.event("Create"), None)

    assert len(formation.started()) == 1
    assert formation.answers == []


@pytest.mark.parametrize(
    ("error", "longest"), [("AccessDeniedException", 200), ("StateMachineDoesNotExist", 0)], ids=["denied", "gone"]
)
def test_a_waiter_that_cannot_be_started_fails_the_request(
    formation: CloudFormation, clock: Clock, messages: Messages, error: str, longest: int
) -> None:
    """Without an answer, CloudFormation would wait for an hour."""
    with start_fails({"Error": {"Code": error, "Message": "no"}}, times=1000) as rejected:
        artifacts.provide(formation.event("Create"), None)

    (answer,) = formation.answers
    messages.record("ArtifactError", answer["Reason"])
    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"] == "0" * 64
    assert error in answer["Reason"]
    assert clock.seconds <= longest
    assert rejected


def test_a_service_that_does_not_answer_leaves_the_time_to_say_so(formation: CloudFormation, clock: Clock) -> None:
    """The function has 5 minutes."""
    config = provider.states().meta.config
    attempts = config.retries["total_max_attempts"] * (config.read_timeout + config.connect_timeout)

    def wait(**_: Any) -> None:
        clock.sleep(attempts)
        raise ReadTimeoutError(endpoint_url="https://states.example")

    events = provider.states().meta.events
    events.register_first("before-call.sfn.StartExecution", wait)
    try:
        artifacts.provide(formation.event("Create"), None)
    finally:
        events.unregister("before-call.sfn.StartExecution", wait)

    (answer,) = formation.answers
    assert answer["Status"] == "FAILED"
    assert clock.seconds < 5 * 60 - provider.SECONDS


def outcome(formation: CloudFormation, more: Mapping[str, Any]) -> dict[str, Any]:
    """What CloudFormation is told when the waiter has come to this end."""
    event = formation.event("Create", PhysicalResourceId="0" * 64, StartedAt=0.0, **more)
    assert artifacts.is_complete(event, None) == {"IsComplete": True}
    (answer,) = formation.answers
    assert formation.types == [""]
    assert answer["PhysicalResourceId"] == "0" * 64
    return answer


def test_the_end_of_the_polls_is_told_to_cloudformation(formation: CloudFormation) -> None:
    assert outcome(formation, {"Polled": {"IsComplete": True}})["Status"] == "SUCCESS"


def test_a_poll_that_is_not_complete_is_no_outcome(formation: CloudFormation) -> None:
    event = formation.event("Create", resource=WAIT, PhysicalResourceId="search", StartedAt=0.0)

    assert artifacts.is_complete(event | {"Polled": {"IsComplete": False}}, None) == {"IsComplete": True}

    assert formation.answers == []  # that was a poll, whose own outcome comes next


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ({"Error": "ArtifactError", "Cause": json.dumps({"errorMessage": "bert is missing"})}, "bert is missing"),
        ({"Error": "States.Timeout", "Cause": "not JSON"}, "States.Timeout: not JSON"),
        ({"Error": "Lambda.Unknown"}, "Lambda.Unknown:"),
        ({"Error": "E", "Cause": json.dumps(["a list"])}, 'E: ["a list"]'),
    ],
    ids=["raised", "no JSON", "no cause", "another form"],
)
def test_a_failure_says_what_was_raised(formation: CloudFormation, failure: dict[str, str], reason: str) -> None:
    answer = outcome(formation, {"Failure": failure})

    assert (answer["Status"], answer["Reason"]) == ("FAILED", reason)


def test_a_failure_outweighs_an_earlier_poll(formation: CloudFormation) -> None:
    failed = {"Failure": {"Error": "E", "Cause": "gone"}, "Polled": {"IsComplete": False}}
    assert outcome(formation, failed)["Status"] == "FAILED"


GROUP = "Store-Logs-123"


@pytest.mark.parametrize(
    "text", ["\u201cx\u201d\n", '"', "\\", "\u00fc", "x"], ids=["quotes", "escaped", "slash", "umlaut", "plain"]
)
def test_a_long_reason_fits_into_the_answer(
    formation: CloudFormation, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the longest names that CloudFormation allows for a stack, a resource and its physical id."""
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", GROUP)
    stack = f"arn:aws-us-gov:cloudformation:us-gov-west-1:123456789012:stack/{'s' * 128}/{'0' * 36}"
    names = {"StackId": stack, "LogicalResourceId": "l" * 255, "PhysicalResourceId": "p" * 1024}
    event = formation.event("Create", StartedAt=0.0, **names)
    reason = text * 10_000

    with caplog.at_level(logging.INFO, logger="artifacts"):
        failure = {"Error": "E", "Cause": json.dumps({"errorMessage": reason})}
        assert artifacts.is_complete(event | {"Failure": failure}, None) == {"IsComplete": True}

    (answer,) = formation.answers  # of 4,096 bytes at most
    assert answer["Reason"].isascii()
    assert answer["Reason"].isprintable()
    assert answer["Reason"].endswith(f"... [full text in the log group {GROUP}]")
    assert reason in caplog.text


def test_a_reason_names_the_log_group_once(formation: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", GROUP)
    told = f"bert is missing [full text in the log group {GROUP}]"

    answer = outcome(formation, {"Failure": {"Error": "E", "Cause": json.dumps({"errorMessage": told})}})

    assert answer["Reason"] == told


def test_a_long_rejection_is_cut_and_logged(
    formation: CloudFormation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", GROUP)
    wrong = "x" * 5000

    with caplog.at_level(logging.INFO, logger="artifacts"):
        artifacts.provide(formation.event("Create", ResourceProperties={"PlanSha256": wrong}), None)

    assert formation.answers[0]["Reason"].endswith(f"x... [full text in the log group {GROUP}]")
    assert wrong in caplog.text


@pytest.mark.parametrize(("service", "timeout"), [("stepfunctions", 120), ("s3", 300)])
def test_a_call_without_a_route_ends_before_its_function(formation: CloudFormation, service: str, timeout: int) -> None:
    """In a VPC, a packet to another region may get no answer at all."""
    config = clients.client(service).meta.config
    assert config.connect_timeout * config.retries["total_max_attempts"] < timeout
