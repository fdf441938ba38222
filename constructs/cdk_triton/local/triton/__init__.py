"""Real tritonserver processes behind SageMaker's runtime API, on this machine.

`TritonHost` is imported when it is asked for: Triton's Python stub imports the stand-in backends below this package,
and needs neither boto3 nor the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdk_triton.local.triton.host import TritonHost

__all__ = ["TritonHost"]


def __getattr__(name: str) -> object:
    if name == "TritonHost":
        from cdk_triton.local.triton.host import TritonHost

        return TritonHost
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
