"""What follows from the release that serves."""

from __future__ import annotations

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.releases import Release, release_order
from cdk_triton.triton.schema import SCHEMA_RELEASE

__all__ = ["is_at_least", "is_newer_than_schema", "is_older", "known_release", "knows_aoti"]

_AOTI_SINCE = "26.03"  # branches of core: from r26.03 on it knows `torch_aoti` and `model.pt2`


def known_release(platform: ServingPlatform | None) -> Release | None:
    """The versions in the release that serves; None if no platform or no release is given."""
    return None if platform is None else platform.versions


def is_at_least(platform: ServingPlatform, release: str) -> bool:
    """Whether the release that serves is known to be this one or newer."""
    return platform.release is not None and release_order(platform.release) >= release_order(release)


def is_older(platform: ServingPlatform, release: str) -> bool:
    """Whether the release that serves is known to be older than this one."""
    return platform.release is not None and release_order(platform.release) < release_order(release)


def is_newer_than_schema(platform: ServingPlatform | None) -> bool:
    """Whether the server may have fields that the schema of `config.pbtxt` does not have."""
    if platform is None or platform.release is None:
        return False
    return release_order(platform.release) > release_order(SCHEMA_RELEASE)


def knows_aoti(platform: ServingPlatform | None) -> bool:
    """Whether the server has PyTorch's second platform, `torch_aoti`; True if no release is given."""
    release = platform.release if platform is not None else None
    return release is None or release_order(release) >= release_order(_AOTI_SINCE)
