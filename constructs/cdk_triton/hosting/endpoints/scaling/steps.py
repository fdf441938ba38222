"""Adds readable errors and a cooldown for each direction to the CDK's step scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as autoscaling

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.scaling.checks import check_count
from cdk_triton.hosting.naming.literals import is_token
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["check_evaluation", "check_steps", "set_scale_in_cooldown"]

MAX_STEPS: Final = 40
"""Steps of one policy, as the CDK's `scale_on_metric` states it."""


def check_steps(what: str, steps: Sequence[autoscaling.ScalingInterval]) -> None:
    """Reject steps that cannot scale. The CDK itself checks overlaps and gaps among them.

    Raises:
        ConfigurationError: there are too few or too many steps, or a part of an instance or nothing changes.
    """
    if not 2 <= len(steps) <= MAX_STEPS:
        raise ConfigurationError(
            f"{what} has {len(steps)} scaling_steps: give 2 to {MAX_STEPS}, such as one step that adds instances above "
            "a value and one step that removes instances below another value"
        )
    for step in steps:
        if not is_token(step.change) and not float(step.change).is_integer():
            raise ConfigurationError(
                f"a step of {what} changes the number of instances by {step.change:g}: use a whole number"
            )
    if not any(step.change for step in steps):
        raise ConfigurationError(f"no step of {what} changes the number of instances: give at least one step a change")


def check_evaluation(what: str, periods: int | None, datapoints: int | None) -> None:
    """Reject numbers of periods that an alarm cannot have.

    Raises:
        ConfigurationError: a number is not a whole number of at least 1, or there are more datapoints than periods.
    """
    check_count(f"evaluation_periods of {what}", periods)
    check_count(f"datapoints_to_alarm of {what}", datapoints)
    if datapoints is None or is_token(datapoints) or is_token(periods):
        return
    if periods is None or datapoints > periods:
        raise ConfigurationError(
            f"datapoints_to_alarm of {what} is {datapoints}, but evaluation_periods is {periods}: use "
            f"evaluation_periods={datapoints} or more, or fewer datapoints"
        )


def set_scale_in_cooldown(policy: autoscaling.StepScalingPolicy, cooldown: Duration) -> None:
    """Set the cooldown for removing instances, because the CDK has one cooldown for both directions."""
    for action in (policy.lower_action, policy.upper_action):
        resource = None if action is None else action.node.default_child
        if isinstance(resource, autoscaling.CfnScalingPolicy):
            configuration = stack_of(resource).resolve(resource.step_scaling_policy_configuration)
            if any(step["scalingAdjustment"] < 0 for step in configuration["stepAdjustments"]):
                resource.add_property_override("StepScalingPolicyConfiguration.Cooldown", cooldown.to_seconds())
