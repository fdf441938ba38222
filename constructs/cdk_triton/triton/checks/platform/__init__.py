"""CT60x to CT64x the release and the instance, CT7xx TensorRT's own parser."""

from __future__ import annotations

from cdk_triton.triton.checks.platform import instance_types, plan_networks, preflight, releases

__all__ = ["instance_types", "plan_networks", "preflight", "releases"]
