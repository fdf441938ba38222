"""The time of functions, state machines and jobs, which skip their pauses while there are faults."""

from __future__ import annotations

import threading
import time

__all__ = ["SkippedTime"]


class SkippedTime:
    """The machine's time, and all pauses that were skipped.

    Pauses that begin together are skipped once. The time never goes back, also after the faults, because locks and jobs
    have its stamps.

    Attributes:
        skips: whether pauses are skipped now.
        ahead: the seconds that were skipped.
    """

    def __init__(self) -> None:
        self.skips = False
        self.ahead = 0.0
        self._lock = threading.Lock()

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self.ahead

    def skip_to(self, moment: float) -> None:
        """Let a pause end; nothing happens if its end has passed already."""
        with self._lock:
            self.ahead = max(self.ahead, moment - time.time())
