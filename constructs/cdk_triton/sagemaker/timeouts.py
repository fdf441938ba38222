"""How long a container may take to start: SageMaker's default, and the longer time of a large model."""

from __future__ import annotations

import math
from typing import Final

from cdk_triton.sagemaker.limits import MAX_TIMEOUT_SECONDS

__all__ = ["LOAD_MARGIN", "START_SECONDS", "start_timeout_after_load", "start_timeout_seconds"]

START_SECONDS: Final = 480
"""SageMaker gives a container 8 minutes ("How Your Container Should Respond to Health Check (Ping) Requests" in its
developer guide)."""

_SMALL_BYTES: Final = 1_000_000_000
_LOAD_BYTES_PER_SECOND: Final = 25_000_000
"""A fifth of the 128 MB/s that EBS gives a gp2 volume of up to 170 GiB, because the container does not only read: one
thread also unpacks packed environments."""

LOAD_MARGIN: Final = 2
"""How much longer an instance may take to load than the job of a rehearsal, which has just written the files, so that
they are still in memory. A guess, not measured."""


def start_timeout_seconds(size: int) -> int:
    """Seconds for the start of a container, that fit a model whose files have `size` bytes.

    Up to 1 GB, SageMaker's 8 minutes are enough. A larger model adds a second per 25 MB. The sum is in whole minutes,
    so small changes of the files do not change it, and at most an hour, SageMaker's limit.
    """
    if size <= _SMALL_BYTES:
        return START_SECONDS
    return min(MAX_TIMEOUT_SECONDS, 60 * math.ceil((START_SECONDS + size / _LOAD_BYTES_PER_SECOND) / 60))


def start_timeout_after_load(seconds: float) -> int:
    """Seconds for the start of a container whose models took `seconds` to load in a rehearsal: twice as long.

    They are in whole minutes, and at most an hour, SageMaker's limit.
    """
    return min(MAX_TIMEOUT_SECONDS, 60 * math.ceil(LOAD_MARGIN * seconds / 60))
