"""Whether the server has a response cache, and what it does to the order of responses."""

from __future__ import annotations

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import has_argument
from cdk_triton.checks.derived.releases import is_within
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.schema import ModelConfig

__all__ = ["SOUND_SINCE", "breaks_ordering", "has_cache", "has_freed_memory"]

SOUND_SINCE = "26.11"  # the notes of 2.75.0
_REWORKED_SINCE = "26.08"  # the notes of 2.72.0


def has_cache(context: CheckContext) -> bool:
    """Whether the container's environment gives the server a cache."""
    return has_argument(context, "--cache-config") or has_argument(context, "--response-cache-byte-size")


def has_freed_memory(platform: ServingPlatform | None) -> bool:
    """Whether the dynamic batcher of the release uses freed memory."""
    return platform is not None and is_within(platform, _REWORKED_SINCE, SOUND_SINCE)


def breaks_ordering(context: CheckContext, config: ModelConfig) -> bool:
    """Whether a cache meets `preserve_ordering`, which servers before 26.11 cannot do both.

    If no environment is given, only the servers that may crash count.
    """
    cached = has_cache(context) or (context.environment is None and has_freed_memory(context.platform))
    return cached and config.dynamic_batching.preserve_ordering and config.response_cache.enable
