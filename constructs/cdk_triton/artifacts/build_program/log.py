"""Log lines: one JSON object per line, which CloudWatch Logs Insights reads without being told how."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, TextIO

__all__ = ["Log", "utc_time"]


def utc_time() -> str:
    """The time of now as ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Log:
    """Writes events.

    Every line has `time` (ISO 8601, UTC) and `event`, then what the log is about (`repository`, `step`), then the
    event's own fields. What a command prints is an event `output` with its line in `text`. The environment is never
    written.

    Args:
        stream: where lines go; each is flushed.
        about: fields of every line.
    """

    def __init__(self, stream: TextIO, **about: str) -> None:
        self._stream = stream
        self._about = about

    def about(self, **fields: str) -> Log:
        """A log of the same stream whose lines carry these fields too."""
        return Log(self._stream, **{**self._about, **fields})

    def event(self, event: str, **fields: Any) -> None:
        """Write one line."""
        line = {"time": utc_time(), "event": event, **self._about, **fields}
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()
