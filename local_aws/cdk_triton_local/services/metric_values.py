"""The values of CloudWatch metrics, by period, as alarms and scaling policies need them."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Clock
from cdk_triton_local.services.metric_math import Series, compute

__all__ = ["Datum", "MetricValues"]

_KEPT_SECONDS: Final = 24 * 3600.0
"""AWS evaluates at most a day of an alarm whose periods are shorter than an hour (PutMetricAlarm)."""


@dataclass(frozen=True, slots=True)
class Datum:
    """What was published of a metric at a time.

    Attributes:
        namespace: the namespace of the metric.
        name: its name.
        dimensions: names and values.
        time: seconds since 1970.
        total: the sum of the values.
        number: how many values.
        least: the smallest.
        most: the largest.
        values: the single values, from which percentiles are computed; empty if they are not known.
        counts: how often each of them was counted.
    """

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]
    time: float
    total: float
    number: float
    least: float
    most: float
    values: Sequence[float]
    counts: Sequence[float]


class MetricValues:
    """The metrics that were published since a day.

    Args:
        read: returns what was published since the last call, with the machine's times. Gets the time from which data
            are needed.
        clock: the clock of the periods.
    """

    def __init__(self, read: Callable[[float], Sequence[Datum]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._data: dict[tuple[str, str], list[Datum]] = defaultdict(list)

    def refresh(self) -> None:
        """Take in what was published meanwhile, and forget what is older than a day."""
        oldest = self._clock.now - _KEPT_SECONDS
        for datum in self._read(self._clock.machine_now - _KEPT_SECONDS):
            found = self._data[datum.namespace, datum.name]
            found.append(replace(datum, time=datum.time + self._clock.gained))
            if found[0].time < oldest:
                found[:] = [each for each in found if each.time >= oldest]

    def is_published(self, metric: Mapping[str, Any]) -> bool:
        """Whether there are data of a metric, with any dimensions."""
        return (metric["Namespace"], metric["MetricName"]) in self._data

    def of_metric(self, metric: Mapping[str, Any], stat: str, period: float, periods: int) -> Series:
        """The values of a metric in the last complete periods.

        Args:
            metric: Namespace, MetricName and Dimensions. As in moto, further dimensions of a datum do not matter.
            stat: Sum, SampleCount, Average, Minimum, Maximum, or a percentile such as p99.
            period: seconds.
            periods: the number of periods.

        Raises:
            LocalError: the statistic is another one.
        """
        statistic = _statistic(stat)
        wanted = {(each["Name"], each["Value"]) for each in metric.get("Dimensions") or ()}
        start = self._clock.now - period * periods
        found: list[list[Datum]] = [[] for _ in range(periods)]
        for datum in self._data.get((metric["Namespace"], metric["MetricName"]), ()):
            number = math.floor((datum.time - start) / period)
            if 0 <= number < periods and wanted <= datum.dimensions:
                found[number].append(datum)
        return [statistic(data) if data else None for data in found]

    def of_queries(self, queries: Sequence[Mapping[str, Any]], periods: int, period: float = 0) -> Series:
        """The values of the query whose data are returned.

        Args:
            queries: Metrics of an alarm, or of a scaling policy.
            periods: the number of periods.
            period: seconds, for queries that do not name them.

        Raises:
            LocalError: a query is not computed here.
        """
        known: dict[str, Series] = {}
        for query in sorted(queries, key=lambda each: "Expression" in each):
            if "Expression" in query:
                known[query["Id"]] = compute(query["Expression"], known, periods)
            else:
                stat = query["MetricStat"]
                known[query["Id"]] = self.of_metric(stat["Metric"], stat["Stat"], stat.get("Period", period), periods)
        (returned,) = [each["Id"] for each in queries if each.get("ReturnData", True)]
        return known[returned]


_STATISTICS: Final[Mapping[str, Callable[[Sequence[Datum]], float]]] = {
    "Sum": lambda data: sum(each.total for each in data),
    "SampleCount": lambda data: sum(each.number for each in data),
    "Average": lambda data: sum(each.total for each in data) / sum(each.number for each in data),
    "Minimum": lambda data: min(each.least for each in data),
    "Maximum": lambda data: max(each.most for each in data),
}


def _statistic(stat: str) -> Callable[[Sequence[Datum]], float | None]:
    if stat in _STATISTICS:
        return _STATISTICS[stat]
    try:
        return functools.partial(_percentile, float(stat.removeprefix("p")) / 100)
    except ValueError:
        raise LocalError(
            f"the local AWS does not compute the statistic {stat}; it has {', '.join(_STATISTICS)} and percentiles "
            "such as p99"
        ) from None


def _percentile(share: float, data: Sequence[Datum]) -> float | None:
    known = sorted(pair for each in data for pair in zip(each.values, each.counts, strict=True))
    below = itertools.accumulate(count for _, count in known)
    rank = share * sum(count for _, count in known)
    return next((value for (value, _), so_far in zip(known, below, strict=True) if so_far >= rank), None)
