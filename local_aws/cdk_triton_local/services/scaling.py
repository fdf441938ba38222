"""Scales variants and inference components as Application Auto Scaling does.

Sources: "Target tracking scaling policies", "Step scaling policies" and "Scheduled scaling" in the user guide of
Application Auto Scaling, and PutScalingPolicy in its API reference. The numbers of the alarms of target tracking are
not documented; docs/cost.md lists who has seen them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from cdk_triton_local.clock import Clock
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
"""The predefined metrics that are published here."""

_UTILIZATION: Final = "/aws/sagemaker/Endpoints"
"""The namespace of metrics that are not published here, unless somebody does it."""


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
        is_pending: its limits were set while its number could not change.
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
    is_pending: bool
    count: int | None
    scale: Callable[[int], None]
    limit: Callable[[int | None, int | None], None]


@dataclass
class _Activity:
    """What a step policy has done last.

    Attributes:
        change: the instances that it has added, within one cooldown together; a negative number has been removed.
        until: the end of its cooldown; infinite while instances start or stop.
    """

    change: int
    until: float


class Scaling:
    """Looks at all scalable targets every minute.

    Args:
        targets: reads the scalable targets.
        values: the values of metrics.
        clock: the clock of cooldowns. Schedules follow the machine's time.
        log: gets a line for each change.
    """

    def __init__(
        self,
        targets: Callable[[], Sequence[Target]],
        values: MetricValues,
        clock: Clock,
        log: Callable[[str], None],
    ) -> None:
        self._read_targets = targets
        self._values = values
        self._clock = clock
        self._log = log
        self._minute = round(clock.machine_now) // _MINUTE
        self._out: dict[str, float] = {}  # when a tracking policy last scaled out and in, by its ARN
        self._in: dict[str, float] = {}
        self._steps: dict[str, _Activity] = {}  # of step policies, by their ARN

    def evaluate(self) -> None:
        """Run the schedules that are due, and then follow the metrics."""
        before, self._minute = self._minute, round(self._clock.machine_now) // _MINUTE
        minutes = range(before + 1, self._minute + 1)
        for target in self._targets():
            with self._logged(target):
                if target.is_pending and target.count is not None:
                    target.limit(None, None)
            for schedule in () if target.suspended.get("ScheduledScalingSuspended") else target.schedules:
                with self._logged(target):
                    times = (minute * _MINUTE for minute in minutes)
                    if any(is_due(schedule.expression, schedule.zone, schedule.created, time) for time in times):
                        self._log(f"scaling of {target.resource}: schedule {schedule.name}")
                        target.limit(schedule.least, schedule.most)
        for target in self._targets():
            with self._logged(target):
                self._follow(target)

    @contextmanager
    def _logged(self, target: Target) -> Iterator[None]:
        """Log an error, because other targets and schedules scale, too."""
        try:
            yield
        except Exception as error:
            self._log(f"scaling of {target.resource}: {error}")

    def step(self, arn: str, alarm: Mapping[str, Any], series: Series) -> None:
        """Carry out a step policy.

        Args:
            arn: the policy's ARN.
            alarm: the alarm that has gone off.
            series: the values that the alarm has evaluated.
        """
        values = [value for value in series if value is not None]
        for target in self._targets():
            for policy in target.policies:
                if policy.arn == arn and target.count is not None and values:
                    self._take_step(target, policy, alarm["Threshold"], values)

    def _targets(self) -> Sequence[Target]:
        """The targets; where no instances start or stop any more, the cooldowns of step policies begin."""
        targets = self._read_targets()
        for policy in (policy for target in targets if target.count is not None for policy in target.policies):
            activity = self._steps.get(policy.arn)
            if activity is not None and activity.until == math.inf:
                activity.until = self._clock.now + float(policy.body.get("Cooldown", _COOLDOWN))
        return targets

    def _take_step(self, target: Target, policy: Policy, threshold: float, values: Sequence[float]) -> None:
        """Within a cooldown, a larger step adds what the policy has not yet added, and nothing is removed."""
        count, body = target.count or 0, policy.body
        kind = body.get("MetricAggregationType", "Average")
        value = sum(values) / len(values) if kind == "Average" else (min if kind == "Minimum" else max)(values)
        wanted = count + next((_change(body, step, count) for step in _steps(body, value - threshold)), 0)
        last = self._steps.get(policy.arn, _Activity(0, -math.inf))
        added = 0
        if self._clock.now < last.until:
            added = max(last.change, 0)
            wanted = max(wanted if body["AdjustmentType"] == "ExactCapacity" else wanted - added, count)
        if change := self._set(target, wanted, [policy]):
            self._steps[policy.arn] = _Activity(change + added if change > 0 else change, math.inf)

    def _follow(self, target: Target) -> None:
        """Add what the policy with the largest number wants, or remove if all that may remove are ready to."""
        tracking = [
            (policy, series)
            for policy in target.policies
            if policy.is_tracking and (series := self._series(target, policy)) is not None
        ]
        if target.count is None:
            return
        adding = [
            (wanted, policy)
            for policy, series in tracking
            if (wanted := self._wanted_out(target, policy, series)) is not None
        ]
        # "only if all of the target tracking policies (with the scale-in portion enabled) are ready to scale in"
        removers = [each for each in tracking if not each[0].body.get("DisableScaleIn")]
        removing = [wanted for each in removers if (wanted := self._wanted_in(target, *each)) is not None]
        if adding:
            policies = [policy for _, policy in adding]
            change = self._set(target, max(wanted for wanted, _ in adding), policies)
        elif removers and len(removing) == len(removers):
            policies = [policy for policy, _ in removers]
            # "more gradually" than it adds; here, one at a time
            change = self._set(target, max(target.count - 1, *removing), policies)
        else:
            return
        if change:
            (self._out if change > 0 else self._in).update((policy.arn, self._clock.now) for policy in policies)

    def _wanted_out(self, target: Target, policy: Policy, series: Series) -> int | None:
        goal, count, values = float(policy.body["TargetValue"]), target.count or 0, series[-_OUT_PERIODS:]
        if self._clock.now - self._out.get(policy.arn, 0) < float(policy.body.get("ScaleOutCooldown", _COOLDOWN)):
            return None
        if any(value is None or value <= goal for value in values):
            return None
        return max(count, math.ceil(max(count, 1) * (values[-1] or 0) / goal - 1e-9))

    def _wanted_in(self, target: Target, policy: Policy, series: Series) -> int | None:
        goal, count = float(policy.body["TargetValue"]), target.count or 0
        last = max(self._out.get(policy.arn, 0), self._in.get(policy.arn, 0))
        if self._clock.now - last < float(policy.body.get("ScaleInCooldown", _COOLDOWN)):
            return None
        # Also without data: "a target tracking scaling policy does not scale in when the state … is INSUFFICIENT_DATA"
        if any(value is None or value >= _IN_SHARE * goal for value in series):
            return None
        return math.ceil(count * (series[-1] or 0) / goal - 1e-9)

    def _series(self, target: Target, policy: Policy) -> Series | None:
        """The values of a policy's metric; None if SageMaker publishes it, but the local AWS does not."""
        predefined = policy.body.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
        custom = policy.body.get("CustomizedMetricSpecification", {})
        if predefined is None:
            queries = custom.get("Metrics", ())
            metrics = (
                [each["MetricStat"]["Metric"] for each in queries if "MetricStat" in each] if queries else [custom]
            )
            if not any(each["Namespace"] != _UTILIZATION or self._values.is_published(each) for each in metrics):
                return None
            if queries:
                return self._values.of_queries(queries, _IN_PERIODS, _MINUTE)
            return self._values.of_metric(custom, custom["Statistic"], _MINUTE, _IN_PERIODS)
        if predefined not in _PREDEFINED:
            return None
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

    def _set(self, target: Target, wanted: int, policies: Sequence[Policy]) -> int:
        """Set a number within the limits, and return how many instances that adds."""
        count = target.count or 0
        within = min(max(wanted, target.least), target.most)
        direction = "Out" if within > count else "In"
        if within == count or target.suspended.get(f"DynamicScaling{direction}Suspended"):
            return 0
        names = ", ".join(policy.name for policy in policies)
        self._log(f"scaling of {target.resource}: {count} -> {within} because of {names}")
        target.scale(within)
        for policy in target.policies if within > count else ():
            if policy.arn in self._steps and self._steps[policy.arn].change < 0:
                del self._steps[policy.arn]  # "the cooldown period for the scale-in activity stops"
        return within - count


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
    if number == 0:
        return 0
    part = count * number / 100
    whole = math.floor(part) if part > 1 else math.ceil(part) if part < -1 else int(math.copysign(1, part))
    least = int(body.get("MinAdjustmentMagnitude", 0))
    return whole if abs(whole) >= least else int(math.copysign(least, number))
