"""The end of the time that an invocation may take."""

from __future__ import annotations

import time
from typing import Final

__all__ = ["Deadline"]

_AT_LEAST: Final = 0.001  # a socket with a timeout of zero does not wait at all


class Deadline:
    """The common deadline of all that an invocation waits for: a server, a model and its answer.

    Args:
        seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether nothing of the time remains."""
        return time.monotonic() >= self._end

    @property
    def left(self) -> float:
        """The seconds that remain, never less than a millisecond."""
        return max(_AT_LEAST, self._end - time.monotonic())
