"""The progress of an execution that a command follows."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from artifacts.failure import ArtifactError
from artifacts.publication import Place
from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet.execution import Outcome, follow
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.protocol.outcome import Failure
from cdk_triton.triton import ContainerEnvironment
from publisher_machine import CALLER, FLEET, Machine, packed

if TYPE_CHECKING:
    from golden_messages import Messages

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
DESCRIPTION = PublisherDescription("Fleet", "fleet", PLATFORM, ContainerEnvironment(), 8)
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:machine:first-1"


class AwsDouble:
    """An execution, whose map run began a while ago and which ends at the second question."""

    def __init__(self, began: datetime, state: str) -> None:
        self.began = began
        self.state = state
        self.polls = 0

    def client(self, _: str) -> AwsDouble:
        return self

    def pages(self, *_: str, **__: str) -> list[Any]:
        return []

    def describe_execution(self, **_: str) -> dict[str, Any]:
        self.polls += 1
        return {"status": "SUCCEEDED" if self.polls > 1 else "RUNNING"}

    def list_map_runs(self, **_: str) -> dict[str, Any]:
        return {"mapRuns": [{"mapRunArn": f"machine/{self.state}:run", "startDate": self.began}]}

    def describe_map_run(self, **_: str) -> dict[str, Any]:
        counts = {"total": 30, "pending": 12, "running": 8}
        return {"itemCounts": counts, "status": "RUNNING", "startDate": self.began}


def said(began: datetime, *, state: str = "Ensembles", ensembles: int | None = None) -> list[str]:
    """The progress that a command prints that was attached just now."""
    lines: list[str] = []
    aws = cast(Aws, AwsDouble(began, state))
    fleet = Fleet(aws, "Serving/Fleet", DESCRIPTION, "machine", "bucket", frozenset())
    assert follow(fleet, EXECUTION, ensembles=ensembles, wait=lambda _: None, say=lines.append).succeeded
    return lines


class FailedDouble(AwsDouble):
    """An execution that has failed for a reason, with a recorded failure of the ensemble `one`."""

    def __init__(self, cause: str) -> None:
        super().__init__(datetime.now(UTC), "Ensembles")
        self.cause = cause
        self.prefixes: list[str] = []

    def pages(self, *_: str, **asked: str) -> list[Any]:
        self.prefixes.append(asked["Prefix"])
        return [{"Key": f"{asked['Prefix']}one.json"}]

    def get_object(self, **_: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(Failure("one", "publish", "the archive is damaged").text())}

    def describe_execution(self, **_: str) -> dict[str, Any]:
        return {"status": "FAILED", "cause": self.cause}


def failed(cause: str) -> Outcome:
    fleet = Fleet(cast(Aws, FailedDouble(cause)), "Serving/Fleet", DESCRIPTION, "machine", "bucket", frozenset())
    return follow(fleet, EXECUTION, say=lambda _: None)


def test_an_ensemble_without_a_recorded_reason_does_not_get_those_of_others(messages: Messages) -> None:
    machine = Machine()
    machine.publish("first", one=packed({"text/1/model.py": b"1"}), two=packed({"text/1/model.py": b"2"}))
    place = Place(FLEET, "25.09-a10g", EXECUTION)
    machine.attempt(place, lambda publisher: publisher.prepare(f"{CALLER}/first"))
    with pytest.raises(ArtifactError) as error:
        machine.attempt(place, lambda publisher: publisher.count())
    outcome = failed(json.dumps({"errorMessage": str(error.value), "errorType": "ArtifactError"}))
    assert outcome.reason("one") == "the archive is damaged"
    messages.record("cdk-triton fleet", outcome.reason("two"))


def test_an_execution_that_changed_nothing_has_one_reason_for_all() -> None:
    cause = "the request is missing; publish again, which uploads it"
    assert failed(json.dumps({"errorMessage": cause})).reason("two") == cause


def test_the_reasons_of_an_execution_lie_below_the_names_of_its_machine_and_its_own() -> None:
    aws = FailedDouble("ABORTED")
    follow(Fleet(cast(Aws, aws), "Serving/Fleet", DESCRIPTION, "machine", "bucket", frozenset()), EXECUTION, say=print)
    assert aws.prefixes == [f"{Place('fleet', PLATFORM.label, EXECUTION).failures}"]


def test_the_time_that_is_left_follows_from_the_start_of_the_map_run() -> None:
    assert said(datetime.now(UTC) - timedelta(minutes=5)) == ["10 of 30 ensembles, about 10 min left"]


def test_a_clock_that_is_behind_that_of_aws_leaves_no_negative_time() -> None:
    assert said(datetime.now(UTC) + timedelta(seconds=40)) == ["10 of 30 ensembles"]


def test_a_map_run_that_has_not_read_all_its_items_yet_does_not_make_the_total_smaller() -> None:
    began = datetime.now(UTC) - timedelta(minutes=5)
    assert said(began, ensembles=60) == ["10 of 60 ensembles, about 25 min left"]
    assert said(began, state="Builds", ensembles=60) == ["10 of 30 builds, about 10 min left"]
