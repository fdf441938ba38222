"""CT3xx: ensembles and the models that they run."""

from __future__ import annotations

from cdk_triton.triton.checks.ensembles import connections, data_flow, decoupled_steps, loading, step_maps, structure

__all__ = ["connections", "data_flow", "decoupled_steps", "loading", "step_maps", "structure"]
