"""Simulates step policies: an alarm on the metrics that a trace determines, and the steps that it starts.

The rules are those of "Step scaling policies" (user guide of Application Auto Scaling,
https://github.com/awsdocs/application-auto-scaling-user-guide/blob/04798a9f7b18bda27a43c0b9d0650db335308565/doc_source/application-auto-scaling-step-scaling-policies.md)
and of the alarms of CloudWatch. docs/cost.md lists further assumptions.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdk_triton.cli.doctor.endpoints import flat, referred

if TYPE_CHECKING:
    from cdk_triton.cli.estimate.trace import Instance

__all__ = ["StepPolicy", "StepState", "read_steps"]

_STATISTICS = {
    ("AWS/SageMaker", "InvocationsPerInstance"): "Sum",
    ("AWS/SageMaker", "Invocations"): "Sum",
    ("/aws/sagemaker/Endpoints", "GPUUtilization"): "Average",
}
"""The metrics that a trace determines, and the statistic that the model has of each."""
_BREACHES: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_MEANS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda values: sum(values) / len(values),
    "Minimum": min,
    "Maximum": max,
}


@dataclass(frozen=True)
class StepPolicy:
    """A step policy and the alarm that starts it; times are in minutes.

    Attributes:
        metric: the metric of the alarm.
        gpus: the number of GPUs of an instance; GPUUtilization is the sum over these GPUs.
        period: the period of the alarm.
        periods: the number of periods that the alarm evaluates.
        datapoints: how many of these periods must breach the threshold for the state ALARM.
        comparison: the operator of the alarm.
        threshold: the threshold of the alarm.
        adjustment: what the numbers of the steps mean.
        steps: for each step, the lower and upper bound relative to the threshold, and the number.
        least_change: the least number of instances that a change in percent adds or removes.
        cooldown: the pause after the end of an activity of this policy.
        aggregation: how the values of the periods are combined to determine the size of the breach.
    """

    metric: str
    gpus: int
    period: int
    periods: int
    datapoints: int
    comparison: str
    threshold: float
    adjustment: str
    steps: Sequence[tuple[float, float, float]]
    least_change: int
    cooldown: float
    aggregation: str

    def value(self, load: float, serving: int, instance: Instance) -> float:
        """The metric in a minute. Without requests SageMaker sends zeros ("Edit a scaling policy", developer guide)."""
        if self.metric == "GPUUtilization":
            assert instance.gpu_percent is not None  # the model has asked for it
            return self.gpus * min(load / serving / instance.requests * instance.gpu_percent, 100)
        return load / serving if self.metric == "InvocationsPerInstance" else load

    def changed(self, value: float, count: int) -> int:
        """The number of instances by the step of a value."""
        breach = value - self.threshold
        above = value >= self.threshold if self.comparison.startswith("Greater") else value > self.threshold
        for lower, upper, number in self.steps:
            if lower <= breach < upper if above else lower < breach <= upper:
                return self._adjusted(number, count)
        return count

    def _adjusted(self, number: float, count: int) -> int:
        if self.adjustment == "ExactCapacity":
            return int(number)
        if self.adjustment == "ChangeInCapacity":
            return count + int(number)
        # Toward zero, and not to zero ("Scaling adjustment types").
        change = max(math.floor(abs(number) / 100 * count), 1, self.least_change)
        return count + int(math.copysign(change, number)) if number else count


class StepState:
    """The minutes of an alarm, and the last activity of its policy."""

    def __init__(self, policy: StepPolicy) -> None:
        self._policy = policy
        self._values: deque[float] = deque(maxlen=policy.period * policy.periods)
        self._until, self._added = -math.inf, 0

    def look(self, value: float) -> None:
        """Show a minute to the alarm."""
        self._values.append(value)

    def wanted(self, count: int, minute: int) -> int:
        """The number of instances that the policy sets now: an alarm starts it in each minute of the state ALARM."""
        policy = self._policy
        datapoints = self._datapoints()
        if sum(_BREACHES[policy.comparison](each, policy.threshold) for each in datapoints) < policy.datapoints:
            return count
        wanted = policy.changed(_MEANS[policy.aggregation](datapoints), count)
        if minute >= self._until:
            return wanted
        # Within the cooldown a larger step adds the difference only, and nothing is taken away ("Cooldown period"). An
        # exact number has what was added in it already.
        added = 0 if policy.adjustment == "ExactCapacity" else max(self._added, 0)
        return max(wanted - added, count)

    def acted(self, minute: int, ends: int, added: int) -> None:
        """Begin the cooldown at the end of an activity; additions within a cooldown count together."""
        before = max(self._added, 0) if minute < self._until and added > 0 else 0
        self._until, self._added = ends + self._policy.cooldown, before + added

    def end_scale_in(self) -> None:
        """End the cooldown of a removal, as an addition does."""
        if self._added < 0:
            self._until = -math.inf

    def _datapoints(self) -> list[float]:
        """Full periods only, counted back from this minute."""
        minutes, period = list(self._values), self._policy.period
        groups = [minutes[end - period : end] for end in range(len(minutes), period - 1, -period)]
        return [sum(group) / (period if self._policy.metric == "GPUUtilization" else 1) for group in groups]


def read_steps(
    key: str, policy: Mapping[str, Any], alarms: Sequence[Mapping[str, Any]], dimensions: Sequence[Any], gpus: int
) -> StepPolicy | str:
    """A step policy of a template, or the reason why it is not modelled, after its name.

    Args:
        key: the logical id of the policy.
        policy: the properties of the policy.
        alarms: the alarms of the template.
        dimensions: the dimensions that the variant's metrics may have, as `flat` writes them.
        gpus: the number of GPUs of an instance.
    """
    mine = [each for each in alarms if key in map(referred, each.get("AlarmActions", ()))]
    if len(mine) != 1:
        return "which several alarms start" if mine else "whose alarm is not in the template"
    (alarm,) = mine
    name = alarm.get("MetricName")
    if name is None:
        return "which follows a mathematical expression"
    statistic = _STATISTICS.get((str(alarm.get("Namespace")), str(name)))
    if statistic is None:
        return f"which follows {name}"
    if {str(each["Name"]): flat(each["Value"]) for each in alarm.get("Dimensions", ())} not in dimensions:
        return f"which follows {name} of another resource"
    if alarm.get("Statistic") != statistic:
        return f"which follows another statistic of {name} than {statistic}"
    if alarm.get("ComparisonOperator") not in _BREACHES:
        return f"whose alarm compares by {alarm.get('ComparisonOperator')}"
    try:
        return _read(policy["StepScalingPolicyConfiguration"], alarm, gpus)
    except (KeyError, TypeError, ValueError):
        return "whose numbers are not in the template"


def _read(steps: Mapping[str, Any], alarm: Mapping[str, Any], gpus: int) -> StepPolicy | str:
    period, periods = int(alarm["Period"]), int(alarm["EvaluationPeriods"])
    if period % 60:
        return f"whose alarm has periods of {period} seconds, but a trace has periods of minutes"
    return StepPolicy(
        alarm["MetricName"],
        gpus,
        period // 60,
        periods,
        int(alarm.get("DatapointsToAlarm", periods)),
        alarm["ComparisonOperator"],
        float(alarm["Threshold"]),
        steps["AdjustmentType"],
        [
            (
                float(each.get("MetricIntervalLowerBound", -math.inf)),
                float(each.get("MetricIntervalUpperBound", math.inf)),
                float(each["ScalingAdjustment"]),
            )
            for each in steps["StepAdjustments"]
        ],
        int(steps.get("MinAdjustmentMagnitude", 1)),
        int(steps.get("Cooldown", 300)) / 60,
        steps.get("MetricAggregationType", "Average"),
    )
