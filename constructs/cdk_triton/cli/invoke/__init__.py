"""`cdk-triton invoke`: call an endpoint without writing Python."""

from __future__ import annotations

from cdk_triton.cli.invoke.command import invoke

__all__ = ["invoke"]
