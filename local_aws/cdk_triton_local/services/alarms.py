"""Evaluates the alarms of CloudWatch.

Sources: "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data" in CloudWatch's user guide.
moto keeps the alarms and their states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Clock
from cdk_triton_local.services.metric_math import Series
from cdk_triton_local.services.metric_values import MetricValues

__all__ = ["Alarms", "check_alarm", "judge"]

_MORE_PERIODS: Final = 2
"""Periods before the evaluated ones, from which values are taken if newer ones are missing: "CloudWatch attempts to
retrieve a higher number of data points". The tables of the guide have 5 periods for 3 evaluated ones."""

_MINUTE: Final = 60

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}


class Alarms:
    """Brings the alarms to their states, and carries out their actions.

    Args:
        client: makes a boto3 CloudWatch client.
        values: the values of metrics.
        act: carries out an action: its ARN, the alarm as DescribeAlarms returns it, and the evaluated values.
        log: gets a line for each change of a state.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        values: MetricValues,
        act: Callable[[str, Mapping[str, Any], Series], None],
        log: Callable[[str], None],
    ) -> None:
        self._client = client
        self._values = values
        self._act = act
        self._log = log

    def evaluate(self, *, only_short: bool) -> None:
        """Evaluate all alarms, or only those with periods below a minute, which AWS evaluates more often."""
        for page in self._client().get_paginator("describe_alarms").paginate():
            for alarm in page["MetricAlarms"]:
                try:
                    if not only_short or _period(alarm) < _MINUTE:
                        self._evaluate(alarm)
                except Exception as error:  # it may have been deleted, and the others go on
                    self._log(f"alarm {alarm['AlarmName']} was not evaluated: {error}")

    def _evaluate(self, alarm: Mapping[str, Any]) -> None:
        name, before = alarm["AlarmName"], alarm["StateValue"]
        series = _series(alarm, self._values)
        after = judge(alarm, series)
        if after != before:
            self._log(f"alarm {name}: {before} -> {after}")
            self._client().set_alarm_state(
                AlarmName=name, StateValue=after, StateReason=f"Threshold Crossed: the values were {series}."
            )
        if not alarm.get("ActionsEnabled", True):
            return
        kind = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}[after]
        for action in alarm.get(kind) or ():
            # "the alarm continues to invoke the action once per minute" for Auto Scaling, and for others only on change
            if after != before or ":autoscaling:" in action:
                try:
                    self._act(action, {**alarm, "StateValue": after}, series[_MORE_PERIODS:])
                except Exception as error:  # a failed action does not change the state
                    self._log(f"alarm {name}: the action {action} failed: {error}")


def check_alarm(alarm: Mapping[str, Any]) -> None:
    """Reject an alarm that is not evaluated here.

    Args:
        alarm: the members of PutMetricAlarm.

    Raises:
        LocalError: see above.
    """
    if alarm["ComparisonOperator"] not in _COMPARISONS:
        raise LocalError(
            f"the local AWS does not evaluate an alarm with the ComparisonOperator {alarm['ComparisonOperator']}; use "
            f"one of {', '.join(_COMPARISONS)}"
        )
    _series(alarm, MetricValues(lambda oldest: (), Clock(only_moved=True)))


def judge(alarm: Mapping[str, Any], series: Series) -> str:
    """The state of an alarm.

    Args:
        alarm: the alarm, with its present state.
        series: the values of the evaluated periods and of those before them.
    """
    evaluated, missing = int(alarm["EvaluationPeriods"]), alarm.get("TreatMissingData") or "missing"
    needed = int(alarm.get("DatapointsToAlarm") or evaluated)
    breaches = _COMPARISONS[alarm["ComparisonOperator"]]
    ages = [age for age, value in enumerate(reversed(series), 1) if value is not None][:evaluated]
    breaching = sum(breaches(value, alarm["Threshold"]) for age in ages if (value := series[-age]) is not None)
    lacking = evaluated - len(ages)
    if breaching + (lacking if missing == "breaching" else 0) >= needed:
        return "ALARM"
    if missing in ("breaching", "notBreaching") or breaching < len(ages) or (ages and not lacking):
        return "OK"
    if missing == "ignore":
        return str(alarm["StateValue"])
    if not ages:
        return "INSUFFICIENT_DATA"
    # All values breach, but there are fewer than needed: the alarm goes off "when the oldest available breaching
    # datapoint … is at least as old as the value of Datapoints to Alarm".
    return "ALARM" if ages[-1] >= needed else str(alarm["StateValue"])


def _series(alarm: Mapping[str, Any], values: MetricValues) -> Series:
    periods = int(alarm["EvaluationPeriods"]) + _MORE_PERIODS
    if alarm.get("Metrics"):
        return values.of_queries(alarm["Metrics"], periods)
    stat = alarm.get("Statistic") or alarm["ExtendedStatistic"]
    return values.of_metric(alarm, stat, _period(alarm), periods)


def _period(alarm: Mapping[str, Any]) -> float:
    queries: Sequence[Mapping[str, Any]] = alarm.get("Metrics") or ()
    periods = [each["MetricStat"]["Period"] for each in queries if "MetricStat" in each]
    return float(max(periods, default=0) or alarm["Period"])
