"""When a poll that copies ends, so that other requests get their turn, and what the next one finds of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

import artifacts
from artifacts import copying
from artifacts.turn import Turn
from build_model import Cloud, Poll
from build_model.steps import ONE, deploy, poll

if TYPE_CHECKING:
    from tests.handlers.conftest import World

MIB = 2**20
MINUTES = 60


class Remaining:
    """What is left of an invocation, in milliseconds; `pass_` seconds go by."""

    def __init__(self, millis: int = 300_000) -> None:
        self.millis = millis

    def __call__(self) -> int:
        return self.millis

    def pass_(self, seconds: float) -> None:
        self.millis -= int(seconds * 1000)


def test_a_turn_ends_20_seconds_after_its_first_part() -> None:
    remaining = Remaining()
    turn = Turn(remaining, is_last=False)

    remaining.pass_(100)  # a plan of thousands of archives, which are all looked at
    assert not turn.is_over()
    remaining.pass_(19.9)
    assert not turn.is_over()
    remaining.pass_(0.1)
    assert turn.is_over()


def test_the_last_turn_ends_with_the_invocation() -> None:
    remaining = Remaining()
    turn = Turn(remaining, is_last=True)

    assert not turn.is_over()
    remaining.pass_(240)
    assert not turn.is_over()
    remaining.pass_(1)
    assert turn.is_over()


def test_a_turn_does_not_begin_where_the_invocation_ends() -> None:
    assert Turn(Remaining(59_000), is_last=False).is_over()


class TestCopies:
    """An archive of three parts; each question for the time that is left takes the next value."""

    @pytest.fixture(autouse=True)
    def _small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(copying, "PART_BYTES", 5 * MIB)

    @pytest.fixture(name="event")
    def _event(self, world: World) -> dict[str, Any]:
        event = world.publish(world.ensemble("large", size=12 * MIB))
        return event | {"PhysicalResourceId": "p", "StartedAt": time.time()}

    @pytest.mark.slow
    def test_a_poll_that_has_had_its_turn_asks_for_the_next_one_at_once(
        self, world: World, event: dict[str, Any]
    ) -> None:
        with world.counted("UploadPartCopy") as copied:
            answer = artifacts.is_complete(event, world.context([300_000, 281_000, 280_000]))

        assert answer == {"IsComplete": False, "Seconds": 2}
        assert len(copied) == 2

    @pytest.mark.slow
    @pytest.mark.parametrize(("minutes", "seconds"), [(47, 2), (49, None)])
    def test_the_last_poll_of_a_request_goes_on(
        self, world: World, event: dict[str, Any], minutes: int, seconds: int | None
    ) -> None:
        event["StartedAt"] -= minutes * MINUTES

        answer = artifacts.is_complete(event, world.context([300_000, 250_000, 200_000]))

        assert answer.get("Seconds") == seconds
        assert answer["IsComplete"] is (seconds is None)


def test_an_input_is_read_once_however_many_polls_copy_it(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = deploy(cloud, ONE)
    answer, reads = cloud.s3.get_object, list[str]()

    def read(p: Mapping[str, Any]) -> dict[str, Any]:
        reads.append(p["Key"])
        return answer(p)

    monkeypatch.setattr(cloud.s3, "get_object", read)
    cloud.pace = 12  # seconds for each call

    polls = 0
    while not cloud.live_jobs():
        assert poll(stack) == Poll()
        polls += 1
        assert polls < 10

    assert polls > 2
    assert reads.count("bert.onnx") == 1
