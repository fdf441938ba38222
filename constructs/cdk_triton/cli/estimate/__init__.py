"""`cdk-triton estimate`: instances, GPU-hours and cost of scaling, by a model of the documented rules."""

from __future__ import annotations

from cdk_triton.cli.estimate.command import estimate

__all__ = ["estimate"]
