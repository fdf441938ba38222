"""The last lines of a log."""

from __future__ import annotations

import logging
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .builder import LOG_LINES

__all__ = ["last_lines"]

log = logging.getLogger(__name__)


def last_lines(logs: Any, group: str, stream: str) -> list[str]:
    """The last lines of a stream; empty if it cannot be read, because the caller's reason matters more than the log.

    Args:
        logs: a boto3 client of CloudWatch Logs.
        group: the log group's name.
        stream: the stream's name.
    """
    try:
        found = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=LOG_LINES, startFromHead=False)
    except (ClientError, BotoCoreError) as error:
        log.info("no log of %s %s: %s", group, stream, error)
        return []
    return [event["message"].strip() for event in found["events"] if event["message"].strip()]
