"""Evaluates the alarms of CloudWatch.

Sources: "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data" in CloudWatch's user guide.
moto keeps the alarms and their states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Clock
from cdk_triton_local.services.metric_math import Series
from cdk_triton_local.services.metric_values import MetricValues

__all__ = ["Alarms", "check_alarm"]

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

_ACTIONS: Final = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


class Alarms:
    """Brings the alarms to their states, and carries out their actions.

    An action is carried out when the state has changed, also by SetAlarmState. Then, "the alarm continues to invoke the
    action once per minute" if the action is one of Auto Scaling.

    Args:
        client: makes a boto3 CloudWatch client.
        values: the values of metrics.
        now: returns the time, in seconds since 1970.
        act: carries out an action: its ARN, the alarm as DescribeAlarms returns it, and the evaluated values.
        log: gets a line for each change of a state.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        values: MetricValues,
        now: Callable[[], float],
        act: Callable[[str, Mapping[str, Any], Series], None],
        log: Callable[[str], None],
    ) -> None:
        self._client = client
        self._values = values
        self._now = now
        self._act = act
        self._log = log
        self._acted: dict[str, tuple[str, float]] = {}  # the state for which an alarm has acted last, and when

    def evaluate(self, *, only_short: bool) -> None:
        """Evaluate all alarms, or only those with periods below a minute, which AWS evaluates more often."""
        pages = self._client().get_paginator("describe_alarms").paginate()
        alarms = {each["AlarmName"]: each for page in pages for each in page["MetricAlarms"]}
        self._acted = {name: acted for name, acted in self._acted.items() if name in alarms}
        for name, alarm in alarms.items():
            try:
                self._carry_out(alarm, _given_values(alarm))
                if not only_short or _period(alarm) < _MINUTE:
                    self._evaluate(alarm)
            except Exception as error:  # it may have been deleted, and the others go on
                self._log(f"alarm {name} was not evaluated: {error}")

    def _evaluate(self, alarm: Mapping[str, Any]) -> None:
        name, before = alarm["AlarmName"], alarm["StateValue"]
        series = _series(alarm, self._values)
        after = _state(alarm, series)
        if after != before:
            self._log(f"alarm {name}: {before} -> {after}")
            self._client().set_alarm_state(
                AlarmName=name, StateValue=after, StateReason=f"Threshold Crossed: the values were {series}."
            )
        self._carry_out({**alarm, "StateValue": after}, series[_MORE_PERIODS:], again=True)

    def _carry_out(self, alarm: Mapping[str, Any], values: Series, *, again: bool = False) -> None:
        """Carry out the actions if the state is another one, and those of Auto Scaling also `again`."""
        name, state, now = alarm["AlarmName"], alarm["StateValue"], round(self._now())
        before, when = self._acted.get(name, ("INSUFFICIENT_DATA", now))
        is_new = state != before
        if not is_new and (not again or now - when < _MINUTE):
            return
        self._acted[name] = state, now
        for action in alarm.get(_ACTIONS[state], ()) if alarm.get("ActionsEnabled", True) else ():
            if is_new or ":autoscaling:" in action:
                try:
                    self._act(action, alarm, values)
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


def _state(alarm: Mapping[str, Any], series: Series) -> str:
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


def _given_values(alarm: Mapping[str, Any]) -> Series:
    """The values that a scaling policy gets from SetAlarmState: "you must include information in … StateReasonData"."""
    data = json.loads(alarm.get("StateReasonData") or "{}")
    values = data.get("recentDatapoints") if isinstance(data, dict) else None
    return values if isinstance(values, list) else []


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
