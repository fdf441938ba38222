"""The clock of the local AWS: alarms, scaling and the waits of an update take its time, not the machine's.

Whatever waits is a generator that yields the seconds until it continues. `advance` continues these generators in the
order of their times, in the thread that calls it, so the same calls have the same result on a slow machine.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future
from typing import Final, TypeAlias

from cdk_triton.errors import LocalError

__all__ = ["Clock", "Waits"]

_PACE: Final = 60.0
"""The seconds that pass in a second of the machine while an update or a change of instances waits."""

_TICK_SECONDS: Final = 0.25

Waits: TypeAlias = Generator[float, None, None]
"""Something that waits: yields the seconds until it continues."""


class Clock:
    """A clock that starts at the machine's time, runs as fast as that, and can be moved forward.

    Args:
        only_moved: the time stands still between two calls of `advance`.
    """

    def __init__(self, *, only_moved: bool = False) -> None:
        self._now = time.time()
        self._gained = 0.0
        self._only_moved = only_moved
        self._due: list[tuple[float, int, Waits, Future[None], bool]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # guards the attributes above
        self._advancing = threading.RLock()  # what continues may start something
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    @property
    def gained(self) -> float:
        """The seconds by which it is ahead of the machine's time, because it has hurried."""
        return self._gained

    @property
    def machine_now(self) -> float:
        """The machine's time, in seconds since 1970: what callers of AWS take for the time."""
        return self._now - self._gained

    def open(self) -> None:
        """Let the time pass, also after `close`."""
        self._closed.clear()
        if not self._only_moved:
            self._thread = threading.Thread(target=self._run, name="clock", daemon=True)
            self._thread.start()

    def start(self, waits: Waits, *, urgent: bool = False) -> Future[None]:
        """Run something up to its first wait, and continue it in time.

        Args:
            waits: what waits.
            urgent: the clock runs at a minute per second until it has ended.

        Returns:
            The end of it.
        """
        ended: Future[None] = Future()
        with self._advancing:  # no time passes before the first wait has begun
            self._continue(waits, ended, urgent=urgent)
        return ended

    def wait_for(self, waits: Waits) -> None:
        """Run something that is urgent, and return when it has ended.

        Raises:
            LocalError: the local AWS is being stopped.
        """
        self.start(waits, urgent=True).result()

    def advance(self, seconds: float, *, pace: float = 1.0) -> None:
        """Move the time forward; returns when everything that was due has been continued.

        Args:
            seconds: how far.
            pace: how many of these seconds pass in one of the machine.
        """
        with self._advancing:
            until = self._now + seconds
            while (found := self._next(until)) is not None:
                self._move(max(self._now, found[0]), pace)
                self._continue(*found[2:4], urgent=found[4])
            self._move(until, pace)

    def close(self) -> None:
        """Stop the time; whatever waits fails."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            left, self._due = self._due, []
        for _, _, waits, ended, _ in left:
            waits.close()
            ended.set_exception(LocalError("the local AWS is being stopped"))

    def _run(self) -> None:
        before = time.monotonic()
        while not self._closed.wait(_TICK_SECONDS):
            since, before = before, time.monotonic()
            passed = before - since
            # The time that the last `advance` took itself is not multiplied: a slow one would make the next one slower.
            seconds = min(passed, 2 * _TICK_SECONDS) * _PACE if self._hurries() else passed
            self.advance(seconds, pace=seconds / passed)

    def _hurries(self) -> bool:
        with self._lock:
            return any(urgent for *_, urgent in self._due)

    def _move(self, until: float, pace: float) -> None:
        self._gained += (until - self._now) * (1 - 1 / pace)
        self._now = until

    def _next(self, until: float) -> tuple[float, int, Waits, Future[None], bool] | None:
        with self._lock:
            return heapq.heappop(self._due) if self._due and self._due[0][0] <= until else None

    def _continue(self, waits: Waits, ended: Future[None], *, urgent: bool) -> None:
        try:
            seconds = next(waits)
        except BaseException as error:  # whoever waits for the end gets it
            if isinstance(error, StopIteration):
                ended.set_result(None)
            else:
                ended.set_exception(error)
            return
        with self._lock:
            if not self._closed.is_set():
                heapq.heappush(self._due, (self._now + seconds, next(self._numbers), waits, ended, urgent))
                return
        waits.close()
        ended.set_exception(LocalError("the local AWS is being stopped"))
