"""Where this library keeps between runs what it may lose."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["NO_CACHE", "cache_directory"]

NO_CACHE = "CDK_TRITON_NO_CACHE"
"""The environment variable that, with any value, has everything read again (`digests`)."""


def cache_directory() -> Path:
    """Where this library keeps what it may lose: `cdk-triton` in the user's cache directory (XDG_CACHE_HOME)."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""), "cdk-triton")
    # The XDG specification: a path that is not absolute counts as unset.
    return configured if configured.is_absolute() else Path("~/.cache/cdk-triton").expanduser()
