"""The time of functions, state machines and jobs, which skip their pauses while there are faults."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cdk_triton.errors import LocalError

__all__ = ["SkippedTime"]

_SHORTENED_SECONDS = 0.005
"""What is left of a skipped pause, so that others go on."""


class SkippedTime:
    """The machine's time, and all pauses that were skipped.

    Pauses that begin together are skipped once. While a function, a job or the start of a server works, no pause is
    skipped, because what works takes its time: else a job of a second would be polled for an hour. A function skips its
    own pauses. The time never goes back, also after the faults, because locks and jobs have its stamps.

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
        self._working = 0
        self._lock = threading.Lock()

    @contextmanager
    def working(self, after: Callable[[], float] = lambda: 0) -> Iterator[None]:
        """While something works, and does not only wait.

        Args:
            after: the seconds for which it first waits, which may change meanwhile; the pauses are of others.

        Raises:
            LocalError: the local AWS is being stopped.
        """
        began = self.now
        while self.now - began < after():
            self._pause(_SHORTENED_SECONDS)
        with self._lock:
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1

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
            at_most: how long the local AWS waits at most while no pause is skipped.

        Raises:
            LocalError: the local AWS is being stopped.
        """
        until = self.now + seconds
        if not self.skips:
            self._pause(min(seconds, at_most))
            return
        self._pause(min(seconds, _SHORTENED_SECONDS))
        while self._working and self.now < until:
            self._pause(_SHORTENED_SECONDS)
        self.skip_to(until)

    def _pause(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise LocalError("the local AWS is being stopped")
