"""The concurrent executions of Lambda functions, as a new account has them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cdk_triton_local.lambdas.not_run import NotRunError

__all__ = ["CONCURRENT_EXECUTIONS", "Executions", "ThrottledError"]

CONCURRENT_EXECUTIONS = 10
"""The limit of a new account, for each region. "New AWS accounts have reduced concurrency and memory quotas" (Lambda
quotas); doctor reports from accounts are 10 ("Concurrent executions", L-B99A9384)."""


class ThrottledError(NotRunError):
    """All executions are in use."""

    def __init__(self) -> None:
        super().__init__("TooManyRequestsException", 429, "Rate Exceeded.")


class Executions:
    """Counts the executions that run at once.

    Attributes:
        peak: the largest number so far.
        throttled: how many invocations were rejected.
    """

    def __init__(self) -> None:
        self.peak = 0
        self.throttled = 0
        self._running = 0
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Occupy an execution while a function runs.

        Raises:
            ThrottledError: all executions are in use.
        """
        with self._lock:
            if self._running >= CONCURRENT_EXECUTIONS:
                self.throttled += 1
                raise ThrottledError
            self._running += 1
            self.peak = max(self.peak, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
