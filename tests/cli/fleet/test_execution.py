"""The progress of an execution that a command follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet.execution import follow
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.triton import ContainerEnvironment

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


def test_the_time_that_is_left_follows_from_the_start_of_the_map_run() -> None:
    assert said(datetime.now(UTC) - timedelta(minutes=5)) == ["10 of 30 ensembles, about 10 min left"]


def test_a_clock_that_is_behind_that_of_aws_leaves_no_negative_time() -> None:
    assert said(datetime.now(UTC) + timedelta(seconds=40)) == ["10 of 30 ensembles"]


def test_a_map_run_that_has_not_read_all_its_items_yet_does_not_make_the_total_smaller() -> None:
    began = datetime.now(UTC) - timedelta(minutes=5)
    assert said(began, ensembles=60) == ["10 of 60 ensembles, about 25 min left"]
    assert said(began, state="Builds", ensembles=60) == ["10 of 30 builds, about 10 min left"]
