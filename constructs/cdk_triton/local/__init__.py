"""An AWS on this machine for these stacks.

It is imported when it is first used, because the stand-ins in `build_tools` are programs of this package that start
many times in a build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_triton.local.aws import LocalAws

__all__ = ["LocalAws"]


def __getattr__(name: str) -> object:
    """Import `LocalAws` when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cdk_triton.local.aws import LocalAws

    return LocalAws
