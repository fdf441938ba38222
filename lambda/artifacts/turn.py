"""Limits the time of an invocation, so that other requests get their turn.

All functions of an account share its concurrent executions, of which a new account has 10 in a region ("Lambda
quotas"). So an invocation ends after some seconds of work, and the next poll goes on a moment later.
"""

from __future__ import annotations

from collections.abc import Callable

from .failure import NotYetError

__all__ = ["RESERVE_MILLIS", "TURN_MILLIS", "Turn", "TurnIsOverError"]

TURN_MILLIS = 20_000
"""No part is begun this long after the first one of a poll."""

RESERVE_MILLIS = 60_000
"""No part is begun with less time than this left in the invocation."""


class TurnIsOverError(NotYetError):
    """The time is up, and the next poll may continue at once."""


class Turn:
    """The time in which a poll begins parts.

    It begins with the first part, not with the poll. So each poll copies something, however long it takes to look for
    existing objects.

    Args:
        remaining_millis: how long the invocation may still run, in milliseconds.
        is_last: whether the request fails after this poll, which therefore uses all of its time.
    """

    def __init__(self, remaining_millis: Callable[[], int], *, is_last: bool) -> None:
        self._remaining_millis = remaining_millis
        self._is_last = is_last
        self._started: int | None = None

    def is_over(self, more_millis: int = 0) -> bool:
        """Whether no other part may be begun, if `more_millis` more than `RESERVE_MILLIS` are to be left."""
        left = self._remaining_millis()
        if self._started is None:
            self._started = left
        worked = self._started - left
        return left < RESERVE_MILLIS + more_millis or (worked >= TURN_MILLIS and not self._is_last)
