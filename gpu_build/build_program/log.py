"""Log lines: one JSON object per line, which CloudWatch Logs Insights reads without a definition."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Iterator, TextIO

__all__ = ["SILENCE_SECONDS", "Log", "signs_of_life", "utc_time"]

SILENCE_SECONDS = 30.0
"""How long the log may be silent."""


def utc_time() -> str:
    """The time of now as ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Output:
    """Shared by all logs of a stream. `at` and `doing` are the time and the content of the last line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.lock = threading.Lock()
        self.at = self.begun = time.monotonic()
        self.doing: dict[str, Any] = {}


class Log:
    """Writes events.

    Every line has `time` (ISO 8601, UTC) and `event`, then what the log is about (`repository`, `step`), then the
    event's own fields. A line of a command's output is an event `output` with its line in `text`. The environment is
    never written.

    Args:
        stream: where lines go; each is flushed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._written = _Output(stream)
        self._about: dict[str, str] = {}

    def about(self, **fields: str) -> Log:
        """A log of the same stream whose lines carry these fields too."""
        log = Log.__new__(Log)
        log._written, log._about = self._written, {**self._about, **fields}
        return log

    def event(self, event: str, **fields: Any) -> None:
        """Write one line."""
        written = self._written
        with written.lock:
            self._write({"event": event, **self._about, **fields})
            if event != "output":
                written.begun = written.at
                written.doing = {**self._about, "after": event}

    def still_running(self, seconds: float) -> None:
        """Write that the program is still running if nothing was written for so long, and what it did last."""
        written = self._written
        with written.lock:
            now = time.monotonic()
            if now - written.at >= seconds:
                self._write({"event": "still running", **written.doing, "seconds": round(now - written.begun)})

    def _write(self, line: dict[str, Any]) -> None:
        self._written.stream.write(json.dumps({"time": utc_time(), **line}) + "\n")
        self._written.stream.flush()
        self._written.at = time.monotonic()


@contextmanager
def signs_of_life(log: Log, seconds: float = SILENCE_SECONDS) -> Iterator[None]:
    """While this lasts, the log is never silent for much longer than `seconds`, whatever the program waits for.

    A thread does this, because the program may wait for a command, a copy of gigabytes, or a server that does not
    answer.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(seconds / 10):
            log.still_running(seconds)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
