"""The boto3 clients of the functions."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore.config import Config

__all__ = ["CONNECTIONS", "client"]

CONNECTIONS = 16
"""Calls in flight at once; a thousand small archives are copied in minutes instead of half an hour."""

_CONNECT_SECONDS = 5
"""Where no route leads, as from a VPC to another region, botocore would wait a minute at each of its attempts, and so
longer than a function may run."""


@cache
def client(service: str, *, attempts: int = 5, read_seconds: int = 60) -> Any:
    """A client, which several threads may use.

    Args:
        service: as in `boto3.client`.
        attempts: how often a call is tried that is throttled or finds no answer; afterwards the next poll tries again.
        read_seconds: the longest time without a byte of an answer.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        max_pool_connections=CONNECTIONS,
    )
    return boto3.client(service, config=config)  # type: ignore[call-overload]  # the stubs know only names written out
