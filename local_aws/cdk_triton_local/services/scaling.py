"""Scales variants and inference components as Application Auto Scaling does.

Sources: "Target tracking scaling policies", "Step scaling policies" and "Scheduled scaling" in the user guide of
Application Auto Scaling, and PutScalingPolicy in its API reference. The numbers of the alarms of target tracking are
not documented; docs/cost.md lists who has seen them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdk_triton_local.services.metric_math import Series
from cdk_triton_local.services.metric_values import MetricValues
from cdk_triton_local.services.schedules import is_due

__all__ = ["Policy", "Scaling", "Schedule", "Target"]

_MINUTE: Final = 60
_OUT_PERIODS, _IN_PERIODS = 3, 15
_IN_SHARE: Final = 0.9
_COOLDOWN: Final = 300.0
"""The default of target tracking and of step policies."""

_PREDEFINED: Final = {
    "SageMakerVariantInvocationsPerInstance": "InvocationsPerInstance",
    "SageMakerInferenceComponentInvocationsPerCopy": "InvocationsPerCopy",
}
"""The predefined metrics that are published here; the others have no data."""


@dataclass(frozen=True)
class Policy:
    """A scaling policy: `body` is its TargetTracking- or StepScalingPolicyConfiguration."""

    name: str
    arn: str
    is_tracking: bool
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Schedule:
    """A scheduled action; None for a limit that it does not change."""

    name: str
    expression: str
    zone: str | None
    created: float
    least: int | None
    most: int | None


@dataclass(frozen=True)
class Target:
    """A scalable target.

    Attributes:
        resource: its resource id.
        least: its minimum.
        most: its maximum.
        suspended: its SuspendedState.
        policies: its policies.
        schedules: its scheduled actions.
        count: the number of instances or copies; None while it changes.
        scale: sets this number.
        limit: sets minimum and maximum.
    """

    resource: str
    least: int
    most: int
    suspended: Mapping[str, bool]
    policies: Sequence[Policy]
    schedules: Sequence[Schedule]
    count: int | None
    scale: Callable[[int], None]
    limit: Callable[[int | None, int | None], None]


class Scaling:
    """Looks at all scalable targets every minute.

    Args:
        targets: reads the scalable targets.
        values: the values of metrics.
        now: returns the time, in seconds since 1970.
        log: gets a line for each change.
    """

    def __init__(
        self,
        targets: Callable[[], Sequence[Target]],
        values: MetricValues,
        now: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._targets = targets
        self._values = values
        self._now = now
        self._log = log
        self._out: dict[str, float] = {}  # when a policy last scaled out and in, by its ARN
        self._in: dict[str, float] = {}

    def evaluate(self) -> None:
        """Run the schedules that are due, and then follow the metrics."""
        for target in self._targets():
            for schedule in () if target.suspended.get("ScheduledScalingSuspended") else target.schedules:
                try:
                    if is_due(schedule.expression, schedule.zone, schedule.created, round(self._now())):
                        self._log(f"scaling of {target.resource}: schedule {schedule.name}")
                        target.limit(schedule.least, schedule.most)
                except Exception as error:  # the other schedules are due, too
                    self._log(f"scaling of {target.resource}: {error}")
        for target in self._targets():
            try:
                self._follow(target)
            except Exception as error:  # the other targets scale, too
                self._log(f"scaling of {target.resource}: {error}")

    def step(self, arn: str, alarm: Mapping[str, Any], series: Series) -> None:
        """Carry out a step policy.

        Args:
            arn: the policy's ARN.
            alarm: the alarm that has gone off.
            series: the values that the alarm has evaluated.
        """
        for target in self._targets():
            for policy in target.policies:
                if policy.arn == arn and target.count is not None:
                    self._take_step(target, policy, alarm, [value for value in series if value is not None])

    def _take_step(self, target: Target, policy: Policy, alarm: Mapping[str, Any], values: Sequence[float]) -> None:
        count, body = target.count or 0, policy.body
        kind = body.get("MetricAggregationType", "Average")
        if not values:
            return
        value = sum(values) / len(values) if kind == "Average" else (min if kind == "Minimum" else max)(values)
        change = next((_change(body, step, count) for step in _steps(body, value - alarm["Threshold"])), 0)
        cooldown = float(body.get("Cooldown", _COOLDOWN))
        last = max(self._out.get(policy.arn, 0), self._in.get(policy.arn, 0))
        if change and self._now() - last >= cooldown:
            self._set(target, count + change, [policy])

    def _follow(self, target: Target) -> None:
        """The largest number of a policy that adds counts; instances are removed if all policies agree."""
        tracking = [policy for policy in target.policies if policy.is_tracking]
        if target.count is None or not tracking:
            return
        adding = [(wanted, policy) for policy in tracking if (wanted := self._wanted_out(target, policy)) is not None]
        less = [self._wanted_in(target, policy) for policy in tracking]
        removing = [wanted for wanted in less if wanted is not None]
        if adding:
            self._set(target, max(wanted for wanted, _ in adding), [policy for _, policy in adding])
        elif len(removing) == len(less):
            # "more gradually" than it adds; here, one at a time
            self._set(target, max(target.count - 1, *removing), tracking)

    def _wanted_out(self, target: Target, policy: Policy) -> int | None:
        goal, count = float(policy.body["TargetValue"]), target.count or 0
        values = self._series(target, policy)[-_OUT_PERIODS:]
        if self._now() - self._out.get(policy.arn, 0) < float(policy.body.get("ScaleOutCooldown", _COOLDOWN)):
            return None
        if any(value is None or value <= goal for value in values):
            return None
        return max(count, math.ceil(max(count, 1) * (values[-1] or 0) / goal - 1e-9))

    def _wanted_in(self, target: Target, policy: Policy) -> int | None:
        goal, count = float(policy.body["TargetValue"]), target.count or 0
        values = self._series(target, policy)
        last = max(self._out.get(policy.arn, 0), self._in.get(policy.arn, 0))
        if self._now() - last < float(policy.body.get("ScaleInCooldown", _COOLDOWN)):
            return None
        if policy.body.get("DisableScaleIn") or any(value is None or value >= _IN_SHARE * goal for value in values):
            return None
        return math.ceil(count * (values[-1] or 0) / goal - 1e-9)

    def _series(self, target: Target, policy: Policy) -> Series:
        predefined = policy.body.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
        custom = policy.body.get("CustomizedMetricSpecification", {})
        if predefined is None and custom.get("Metrics"):
            return self._values.of_queries(custom["Metrics"], _IN_PERIODS, _MINUTE)
        if predefined is None:
            return self._values.of_metric(custom, custom["Statistic"], _MINUTE, _IN_PERIODS)
        if predefined not in _PREDEFINED:
            return [None] * _IN_PERIODS
        names = target.resource.split("/")
        dimensions = {"EndpointName": names[1], "VariantName": names[3]} if len(names) > 2 else {}
        dimensions = dimensions or {"InferenceComponentName": names[1]}
        metric = {
            "Namespace": "AWS/SageMaker",
            "MetricName": _PREDEFINED[predefined],
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
        }
        # Without requests, SageMaker sends zeros ("Edit a scaling policy" in its developer guide).
        return [value or 0 for value in self._values.of_metric(metric, "Sum", _MINUTE, _IN_PERIODS)]

    def _set(self, target: Target, wanted: int, policies: Sequence[Policy]) -> None:
        count = target.count or 0
        wanted = min(max(wanted, target.least), target.most)
        direction = "Out" if wanted > count else "In"
        if wanted == count or target.suspended.get(f"DynamicScaling{direction}Suspended"):
            return
        names = ", ".join(policy.name for policy in policies)
        self._log(f"scaling of {target.resource}: {count} -> {wanted} because of {names}")
        target.scale(wanted)
        for policy in policies:
            (self._out if wanted > count else self._in)[policy.arn] = self._now()


def _steps(body: Mapping[str, Any], difference: float) -> Iterator[Mapping[str, Any]]:
    """The step of a difference to the threshold: a bound belongs to the step that is farther from the threshold."""
    for step in body.get("StepAdjustments", ()):
        low = step.get("MetricIntervalLowerBound", -math.inf)
        high = step.get("MetricIntervalUpperBound", math.inf)
        if (low <= difference < high) if difference >= 0 else (low < difference <= high):
            yield step


def _change(body: Mapping[str, Any], step: Mapping[str, Any], count: int) -> int:
    number = int(step["ScalingAdjustment"])
    if body["AdjustmentType"] == "ExactCapacity":
        return number - count
    if body["AdjustmentType"] == "ChangeInCapacity":
        return number
    part = count * number / 100
    whole = math.floor(part) if part > 1 else math.ceil(part) if part < -1 else int(math.copysign(1, part))
    least = int(body.get("MinAdjustmentMagnitude", 0))
    return whole if abs(whole) >= least else int(math.copysign(least, number))
