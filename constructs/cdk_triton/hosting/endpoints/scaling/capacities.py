"""The range of the instances or copies of a scaled variant or component."""

from __future__ import annotations

from typing import Any

from aws_cdk import aws_applicationautoscaling as autoscaling

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["capacity_range"]


def capacity_range(target: autoscaling.ScalableTarget) -> tuple[int | None, int | None]:
    """The least and the most instances that the limits and every schedule allow.

    None stands for a value that is known only at deployment.
    """
    resource, stack = target.node.default_child, stack_of(target)
    if not isinstance(resource, autoscaling.CfnScalableTarget):
        return None, None
    standing = {"minCapacity": resource.min_capacity, "maxCapacity": resource.max_capacity}
    scheduled = [each.get("scalableTargetAction", {}) for each in stack.resolve(resource.scheduled_actions) or ()]
    limits: list[dict[str, Any]] = [stack.resolve(standing), *scheduled]
    lows, highs = ([each[name] for each in limits if name in each] for name in standing)
    return (
        min(lows) if all(isinstance(low, int) for low in lows) else None,
        max(highs) if all(isinstance(high, int) for high in highs) else None,
    )
