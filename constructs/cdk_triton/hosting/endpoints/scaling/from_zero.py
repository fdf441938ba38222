"""The way back from zero: a step policy that adds the first instance or copy, and the alarm that starts the policy.

Target tracking cannot do that: it divides the load by the number of instances or copies, which is zero.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

__all__ = ["FROM_ZERO", "start_from_zero"]

FROM_ZERO: Final = "FromZero"
"""The suffix of the id of the construct with the policy and the alarm."""


def start_from_zero(
    scope: Construct,
    id: str,
    target: autoscaling.ScalableTarget,
    *,
    metric: cloudwatch.IMetric,
    periods: int,
    aggregation: autoscaling.MetricAggregationType,
    cooldown: Duration,
    description: str,
) -> None:
    """Add the first instance or copy when a metric is 1 or more.

    Args:
        scope: the construct that policy and alarm belong to.
        id: the beginning of that construct's id.
        target: the scalable target, whose minimum is 0.
        metric: counts the requests that found no instance or copy.
        periods: the number of consecutive periods after which the alarm goes off.
        aggregation: how Application Auto Scaling joins the datapoints.
        cooldown: pause after the first instance or copy was added.
        description: the description of the alarm.
    """
    parts = Construct(scope, f"{id}{FROM_ZERO}")
    action = autoscaling.StepScalingAction(
        parts,
        "Policy",
        scaling_target=target,
        adjustment_type=autoscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        cooldown=cooldown,
        metric_aggregation_type=aggregation,
    )
    action.add_adjustment(adjustment=1, lower_bound=0)
    alarm = cloudwatch.Alarm(
        parts,
        "Alarm",
        alarm_description=description,
        metric=metric,
        threshold=1,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=periods,
        datapoints_to_alarm=periods,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    )
    alarm.add_alarm_action(actions.ApplicationScalingAction(action))
