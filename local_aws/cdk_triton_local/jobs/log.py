"""The output of a job: it goes into a file of the state directory, and to CloudWatch Logs, as on AWS."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from botocore.exceptions import ClientError

__all__ = ["JobLog", "put_function_log"]

_MAX_EVENT_BYTES = 256 * 1024 - 26
"""Longest log event here, in bytes; the API takes 26 more as overhead (PutLogEvents)."""
_MAX_BATCH = 10_000
"""Most events of one PutLogEvents."""


def put_function_log(logs: Any, group: str, text: str) -> None:
    """Write what a Lambda function printed.

    Args:
        logs: a boto3 client of CloudWatch Logs, not with the role of the function.
        group: its log group, made if it does not exist.
        text: its lines.
    """
    stamp = int(time.time() * 1000)
    stream = f"{time.strftime('%Y/%m/%d')}/[$LATEST]local"
    events = [{"timestamp": stamp, "message": line} for line in text.splitlines() if line]
    try:
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    except logs.exceptions.ResourceNotFoundException:
        _open_log_stream(logs, group, stream)
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def _open_log_stream(logs: Any, group: str, stream: str) -> None:
    """Create a log stream, and its log group only if there is none: a role may be allowed only the first."""
    with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
        try:
            logs.create_log_stream(logGroupName=group, logStreamName=stream)
        except logs.exceptions.ResourceNotFoundException:
            with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
                logs.create_log_group(logGroupName=group)
            logs.create_log_stream(logGroupName=group, logStreamName=stream)


class JobLog:
    """The log of one job.

    Args:
        logs: a boto3 client of CloudWatch Logs.
        group: the log group, made if it does not exist.
        stream: the log stream, which is created.
        file: a file with the same lines, for `cdk-triton local logs`.
    """

    def __init__(self, logs: Any, group: str, stream: str, file: Path) -> None:
        self.group = group
        self.stream = stream
        self._logs = logs
        self._partial = b""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = file.open("ab")
        _open_log_stream(logs, group, stream)

    def __enter__(self) -> JobLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell([self._partial] if self._partial else [])
        self._file.close()

    def line(self, text: str) -> None:
        """Write a line about the job."""
        start = b"\n" if self._partial else b""
        self.output(start + text.encode() + b"\n")

    def output(self, data: bytes) -> None:
        """Log what the job has printed; an unfinished line is kept until it ends."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _MAX_EVENT_BYTES:
            lines, self._partial = [*lines, self._partial], b""
        self._tell(lines)

    def _tell(self, lines: list[bytes]) -> None:
        if not lines:
            return
        self._file.write(b"".join(line + b"\n" for line in lines))
        self._file.flush()
        stamp = int(time.time() * 1000)
        events = [
            {"timestamp": stamp, "message": line[:_MAX_EVENT_BYTES].decode(errors="replace")}
            for line in lines
            if line.strip()
        ]
        # A log group that is deleted under a running job loses what comes, as it does on AWS; the file has it.
        with contextlib.suppress(ClientError):
            for first in range(0, len(events), _MAX_BATCH):
                self._logs.put_log_events(
                    logGroupName=self.group, logStreamName=self.stream, logEvents=events[first : first + _MAX_BATCH]
                )
