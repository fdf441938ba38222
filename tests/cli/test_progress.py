"""The progress that long commands show."""

from __future__ import annotations

import pytest

from cdk_triton.cli.progress import Countdown, Progress, time_left


class Screen(Progress):
    """Keeps the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def say(self, text: str) -> None:
        """Keep a text."""
        self.texts.append(text)


def test_the_time_left_follows_from_what_took_time() -> None:
    """2,900 cached verdicts take no time, and the others do not become faster by them."""
    screen, times = Screen(), iter([50.0, 52.0, 70.0, 250.0])
    checked = Countdown(screen, "checked {} repositories", 3_000, clock=lambda: next(times))
    for done in (2_900, 2_901, 2_910, 3_000):
        checked(done)
    assert screen.texts == [
        "checked 2,900 of 3,000 repositories",
        "checked 2,901 of 3,000 repositories, about 3 min left",
        "checked 2,910 of 3,000 repositories, about 3 min left",
        "checked 3,000 of 3,000 repositories",
    ]


@pytest.mark.parametrize(
    ("seconds", "done", "left", "expected"),
    [
        pytest.param(10, 0, 5, "", id="nothing done"),
        pytest.param(10, 1, 5, ", about 50 s left", id="seconds"),
        pytest.param(10, 1, 10, ", about 2 min left", id="minutes"),
        pytest.param(10, 5, 0, "", id="all done"),
        pytest.param(10, 500, 20, "", id="less than a second"),
    ],
)
def test_a_time_left_in_words(seconds: float, done: int, left: int, expected: str) -> None:
    assert time_left(seconds, done, left) == expected
