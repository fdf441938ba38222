"""The time of functions, state machines and jobs, which skip their pauses while there are faults."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from cdk_triton.errors import LocalError

__all__ = ["SkippedTime"]

_SHORTENED_SECONDS = 0.05
"""The longest pause between two attempts or polls while pauses are skipped."""


class SkippedTime:
    """The machine's time, and all pauses that were skipped.

    Pauses that begin together are skipped once. The time never goes back, also after the faults, because locks and jobs
    have its stamps.

    Args:
        stopping: is set when the local AWS is being stopped.

    Attributes:
        skips: whether pauses are skipped now.
        ahead: the seconds that were skipped.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self.skips = False
        self.ahead = 0.0
        self._stopping = stopping
        self._lock = threading.Lock()

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self.ahead

    def skip_to(self, moment: float) -> None:
        """Let a pause end; nothing happens if its end has passed already."""
        with self._lock:
            self.ahead = max(self.ahead, moment - time.time())

    def sleep(self, seconds: float, at_most: float = math.inf) -> None:
        """Wait.

        Args:
            seconds: how long AWS waits.
            at_most: how long the local AWS waits at most.

        Raises:
            LocalError: the local AWS is being stopped.
        """
        until = self.now + seconds
        self._pause(min(seconds, at_most, _SHORTENED_SECONDS if self.skips else math.inf))
        if self.skips:
            self.skip_to(until)

    def await_passed(self, seconds: Callable[[], float]) -> None:
        """Return when so many seconds have passed, also if the number changes meanwhile; the pauses are of others.

        Raises:
            LocalError: the local AWS is being stopped.
        """
        began = self.now
        while self.now - began < seconds():
            self._pause(_SHORTENED_SECONDS)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise LocalError("the local AWS is being stopped")
