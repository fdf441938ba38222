"""Finds the module that builds a recipe."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Mapping

from .step import BuildError, Report, Work

__all__ = ["STEPS", "build_step"]

STEPS = {
    "tensorrt_plan": "tensorrt",
    "dali_pipeline": "dali",
    "conda_environment": "conda",
    "wheel_environment": "wheels",
    "onnx_export": "onnx_export",
}
"""A step's `recipe` and the module of this package whose `build(step, work)` builds it.

Modules are imported when a step needs them: one that cannot be imported fails only its own steps.
"""


def build_step(step: Mapping[str, Any], work: Work) -> Report:
    """Build one step.

    Raises:
        BuildError: no module builds this recipe, or the step failed.
    """
    module = STEPS.get(step["recipe"])
    if module is None:
        known = ", ".join(sorted(STEPS))
        raise BuildError(
            f"the build program does not have the recipe {step['recipe']!r}, only {known}, because the plan and "
            "the program are from different versions of cdk-triton: deploy both with the same "
            "version"
        )
    build: Callable[[Mapping[str, Any], Work], Report] = import_module(f".{module}", __package__).build
    return build(step, work)
