"""Progress of long work, on a terminal only: a file, a pipe and a CI log get none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Countdown", "Progress", "time_left", "working"]


class Progress:
    """The object that `working` yields; `say` replaces the text."""

    def say(self, text: str) -> None:
        """Show a text instead of the last one."""


class _Shown(Progress):
    def __init__(self, status: object) -> None:
        self._status = status

    def say(self, text: str) -> None:
        self._status.update(text)  # type: ignore[attr-defined]  # rich's Status, which is imported on a terminal only


@contextmanager
def working(text: str) -> Iterator[Progress]:
    """Show a text with a mark that moves on stderr, until the work ends."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:
        yield _Shown(status)


class Countdown:
    """Shows how much of the work is done, and about how long the rest takes.

    Args:
        shown: shows the texts.
        text: the work in the past tense, with `{}` in place of the numbers, such as `checked {} repositories`.
        total: how much there is to do.
        clock: the time in seconds.
    """

    def __init__(self, shown: Progress, text: str, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = shown
        self._text = text
        self._total = total
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def __call__(self, done: int) -> None:
        """Show that so much is done; the first call has what was done before and took no time."""
        now = self._clock()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        rest = time_left(now - began, done - before, self._total - done)
        self._shown.say(self._text.format(f"{done:,} of {self._total:,}") + rest)


def time_left(seconds: float, done: int, left: int) -> str:
    """The end of a text of progress: `, about 40 s left`, or "" before anything is done, or if that is about 0 s.

    Args:
        seconds: what has passed.
        done: what was done in this time.
        left: what is left to do.
    """
    rest = seconds / done * left if done else 0
    return f", about {_duration(rest)} left" if round(rest) else ""


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
