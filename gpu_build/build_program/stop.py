"""What ends a build: a fault, the deadline of the program, or a signal."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Sequence

__all__ = ["BuildError", "Stop", "StoppedError", "deadline_from"]


_LATE = (
    "the build ran out of time: raise the builder's timeout, or build the ensembles before the deployment with "
    "`cdk-triton artifacts build`"
)


class BuildError(Exception):
    """Ends an ensemble's build.

    Args:
        reason: the one sentence that the user reads.
        log: the last lines of what failed, if a command did.
    """

    def __init__(self, reason: str, log: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.log = tuple(log)


class StoppedError(BuildError):
    """The program has to end; raised only where the program checks for this."""


class Stop:
    """Is checked at every block that is read, and twice a second while a command runs.

    Args:
        deadline: the moment to end at, as `time.monotonic` counts.
        late: the sentence for the deadline.
    """

    def __init__(self, deadline: float, late: str = _LATE) -> None:
        self._deadline = deadline
        self._late = late
        self._signals: list[str] = []

    def listen(self) -> None:
        """End at SIGTERM (a stopped job) and SIGINT (Ctrl-C)."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)

    def check(self) -> None:
        """Go on, or not.

        Raises:
            StoppedError: the deadline has come, or a signal.
        """
        if self._signals:
            raise StoppedError(f"the job was stopped by {self._signals[0]} before the build was finished; deploy again")
        if time.monotonic() >= self._deadline:
            raise StoppedError(self._late)

    @property
    def seconds_left(self) -> float:
        """The time until the deadline; 0 after it."""
        return max(0.0, self._deadline - time.monotonic())

    def within(self, seconds: float, late: str) -> Stop:
        """The same, with an earlier deadline and a sentence for it."""
        part = Stop(time.monotonic() + seconds, late)
        part._signals = self._signals
        return part

    def _heard(self, number: int, _frame: Any) -> None:
        self._signals.append(signal.Signals(number).name)


def deadline_from(seconds: float) -> float:
    """The moment `seconds` after the job's start, as `time.monotonic` counts.

    CodeBuild gives the start of the build in milliseconds of the epoch (CODEBUILD_START_TIME, "Environment variables in
    build environments" of its user guide); that is earlier than this program's start by the download of the image.
    """
    return time.monotonic() + seconds - _seconds_since_start()


def _seconds_since_start() -> float:
    try:
        started = int(os.environ["CODEBUILD_START_TIME"]) / 1000
    except (KeyError, ValueError):
        return 0.0
    return max(0.0, time.time() - started)
