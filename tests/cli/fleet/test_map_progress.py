"""How often a command asks Step Functions for the progress of a map."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton.cli.fleet.map_progress import MapProgress

BEGAN = datetime(2026, 11, 25, tzinfo=UTC)
ITEMS = {"total": 3, "pending": 1, "running": 1}


class States:
    """Step Functions, which notes the poll of each call."""

    def __init__(self, *, starts: int = 0, ends: int = 1000, failure: str | None = None) -> None:
        self.poll = 0
        self.lists: list[int] = []
        self.describes: list[int] = []
        self.asked: list[str] = []
        self._starts, self._ends, self._failure = starts, ends, failure

    def list_map_runs(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803 boto3's names
        self.lists.append(self.poll)
        first = {"mapRunArn": f"{executionArn}/Builds:map", "startDate": BEGAN}
        second = {"mapRunArn": f"{executionArn}/Ensembles:map", "startDate": BEGAN + timedelta(seconds=1)}
        runs = [second, first] if self.poll >= self._ends else [first]
        return {"mapRuns": runs if self.poll >= self._starts else []}

    def describe_map_run(self, *, mapRunArn: str) -> dict[str, Any]:  # noqa: N803 boto3's names
        self.describes.append(self.poll)
        self.asked.append(mapRunArn)
        if self._failure is not None:
            raise ClientError({"Error": {"Code": self._failure}}, "DescribeMapRun")
        has_ended = mapRunArn.startswith("execution/Builds:") and self.poll >= self._ends
        return {"itemCounts": ITEMS, "status": "SUCCEEDED" if has_ended else "RUNNING", "startDate": BEGAN}

    def follow(self, polls: int) -> list[dict[str, int] | None]:
        """The counts of each poll."""
        progress, found = MapProgress(self, "execution"), []
        for self.poll in range(polls):
            found.append(progress.counts())
        return found


def test_the_map_is_looked_up_once_and_asked_less_and_less_often() -> None:
    states = States()
    assert states.follow(80) == [ITEMS] * 80
    assert states.lists == [0]
    assert states.describes == [0, 1, 3, 7, 15, 31, 47, 63, 79]


def test_a_map_that_starts_late_is_found() -> None:
    states = States(starts=4)
    assert states.follow(9) == [None] * 7 + [ITEMS] * 2
    assert states.lists == [0, 1, 3, 7]


def test_the_map_of_the_ensembles_follows_that_of_the_builds() -> None:
    states = States(ends=2)
    progress = MapProgress(states, "execution")
    units = []
    for states.poll in range(9):
        progress.counts()
        units.append(progress.unit)
    assert states.lists == [0, 7]
    assert [each.partition(":")[0] for each in states.asked] == ["execution/Builds"] * 3 + ["execution/Ensembles"]
    assert units == ["builds"] * 7 + ["ensembles"] * 2


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException"])
def test_a_rejected_question_makes_the_pauses_longer_and_nothing_fails(code: str) -> None:
    states = States(failure=code)
    assert states.follow(200) == [None] * 200
    assert states.describes == [0, 1, 3, 7, 15, 31, 63, 127, 191]


def test_another_error_is_raised() -> None:
    with pytest.raises(ClientError, match="ResourceNotFound"):
        States(failure="ResourceNotFound").follow(1)
