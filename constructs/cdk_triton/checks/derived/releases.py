"""Values that follow from the release that serves."""

from __future__ import annotations

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.releases import Release, release_order
from cdk_triton.triton.schema import SCHEMA_RELEASE

__all__ = [
    "counts_sizes",
    "is_at_least",
    "is_newer_than_schema",
    "is_older",
    "is_within",
    "known_release",
    "knows_aoti",
    "of_release",
]

_AOTI_SINCE = "26.03"  # branches of core: from r26.03 on it knows `torch_aoti` and `model.pt2`

_LIBTORCH_SINCE = "26.04"  # branches of core: from r26.04 on `libtorch` gives the backend, which then rejects it
_COUNTS_SINCE = "26.04"  # core 83aa1ef: before, sizes of tensors wrap around


def known_release(platform: ServingPlatform | None) -> Release | None:
    """The versions in the release that serves; None if no platform or no release is given."""
    return None if platform is None else platform.versions


def of_release(platform: ServingPlatform | None) -> str:
    """The release in a message about its Python: `of 25.09`; "" if no release is given.

    The contents of a custom image are not known, so the release that is given for it counts.
    """
    release = known_release(platform)
    if platform is None or release is None:
        return ""
    return (
        f"of {release.release}"
        if platform.image is None
        else f"of {release.release} (the release given for your image)"
    )


def is_at_least(platform: ServingPlatform, release: str) -> bool:
    """Whether the release that serves is known to be this one or newer."""
    return platform.release is not None and release_order(platform.release) >= release_order(release)


def is_older(platform: ServingPlatform, release: str) -> bool:
    """Whether the release that serves is known to be older than this one."""
    return platform.release is not None and release_order(platform.release) < release_order(release)


def is_within(platform: ServingPlatform, first: str, fixed: str) -> bool:
    """Whether the release that serves is known to be `first` or newer, and older than `fixed`."""
    return is_at_least(platform, first) and is_older(platform, fixed)


def counts_sizes(platform: ServingPlatform | None) -> bool:
    """Whether the server counts elements and bytes of tensors before it uses them; False if no release is given."""
    return platform is not None and is_at_least(platform, _COUNTS_SINCE)


def is_newer_than_schema(platform: ServingPlatform | None) -> bool:
    """Whether the server may have fields that the library's schema of `config.pbtxt` lacks."""
    if platform is None or platform.release is None:
        return False
    return release_order(platform.release) > release_order(SCHEMA_RELEASE)


def knows_aoti(platform: ServingPlatform | None) -> bool:
    """Whether the server has the platform `torch_aoti` of PyTorch; True if no release is given."""
    release = platform.release if platform is not None else None
    return release is None or release_order(release) >= release_order(_AOTI_SINCE)


def knows_libtorch(platform: ServingPlatform | None) -> bool:
    """Whether the server takes the platform `libtorch` for PyTorch's; False if no release is given."""
    return platform is not None and is_at_least(platform, _LIBTORCH_SINCE)
