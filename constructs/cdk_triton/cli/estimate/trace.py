"""Reads what the user has measured: requests over time, and the limits of one instance.

Requests come from a CSV file, an export of CloudWatch, or a shape of a week, as requests in each minute.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError

__all__ = ["Instance", "Trace", "read_trace", "shape"]

_MINUTE = 60
_DAY_MINUTES = 24 * 60
_LONGEST_MINUTES = 400 * _DAY_MINUTES
_FORM = (
    "write CSV with a first line such as time,text,image, and then lines with a time and each ensemble's number of "
    "requests until the time of the next line; or give the JSON of `aws cloudwatch get-metric-statistics` with Sum"
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SHAPE = re.compile(
    r"(?:(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))? +)?(?P<from>\d\d?)-(?P<to>\d\d?) *= *(?P<rate>\d+(?:\.\d+)?)"
)
_REST = re.compile(r"else *= *(\d+(?:\.\d+)?)")
_A_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Instance:
    """The measured limits of one instance.

    Attributes:
        requests: the most requests per minute that the instance can serve.
        gpu_percent: the utilization of one GPU at that rate; None if it was not measured.
        start_minutes: the minutes from the scaling decision until the instance serves requests.
    """

    requests: float
    gpu_percent: float | None
    start_minutes: int


@dataclass(frozen=True)
class Trace:
    """Requests in each minute.

    Attributes:
        source: the origin of the requests, for the report.
        start: the first minute, in UTC.
        requests: the requests in each minute, by ensemble or under one name.
    """

    source: str
    start: datetime
    requests: Mapping[str, tuple[float, ...]]

    @property
    def minutes(self) -> int:
        """How long it is."""
        return len(next(iter(self.requests.values())))

    @property
    def total(self) -> tuple[float, ...]:
        """All requests in each minute."""
        return tuple(map(sum, zip(*self.requests.values(), strict=True)))


def shape(text: str) -> Trace:
    """A week of a shape such as `mon-fri 9-17=40, else=2`: hours of the day in UTC, and requests per second.

    Raises:
        ConfigurationError: the trace has another form.
    """
    rest, periods = 0.0, []
    for part in (each.strip() for each in text.lower().split(",")):
        if found := _REST.fullmatch(part):
            rest = float(found[1])
        elif found := _SHAPE.fullmatch(part):
            periods.append(_period(text, found))
        else:
            raise ConfigurationError(
                f"the part {quoted(part)} of the shape is not a period: write hours and requests per second, such as "
                "'9-17=40, else=2' or 'mon-fri 9-17=40, sat-sun 10-12=5'"
            )
    requests = [rest * _MINUTE] * (7 * _DAY_MINUTES)
    for days, first, last, rate in periods:
        for day in days:
            begin = day * _DAY_MINUTES + first * 60
            requests[begin : day * _DAY_MINUTES + last * 60] = [rate * _MINUTE] * ((last - first) * 60)
    return Trace(f"a week of the shape '{text}', in UTC", _A_MONDAY, {"all": tuple(requests)})


def _period(text: str, found: re.Match[str]) -> tuple[Sequence[int], int, int, float]:
    first, last = int(found["from"]), int(found["to"])
    names = [found["first"], found["last"] or found["first"]] if found["first"] else ["mon", "sun"]
    if not 0 <= first < last <= 24 or any(name not in _DAYS for name in names):
        raise ConfigurationError(
            f"the shape {quoted(text)} has a period that does not exist: use hours from 0 to 24, the smaller first, "
            f"and days from {', '.join(_DAYS)}"
        )
    begin, end = map(_DAYS.index, names)
    days = [day % 7 for day in range(begin, (end if begin <= end else end + 7) + 1)]
    return days, first, last, float(found["rate"])


def read_trace(file: Path) -> Trace:
    """A CSV file, or JSON of `aws cloudwatch get-metric-statistics` or `get-metric-data`, with the sums of requests.

    Raises:
        ConfigurationError: the file cannot be read, or has another form.
    """
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}; give a CSV file or JSON of CloudWatch") from error
    try:
        rows = _of_cloudwatch(json.loads(content)) if content.lstrip().startswith("{") else _of_csv(content)
        return _by_minute(str(file), rows)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, ConfigurationError):
            raise
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ConfigurationError(f"{file} is not a trace ({why}): {_FORM}") from error


def _of_csv(content: str) -> dict[str, dict[datetime, float]]:
    reader = csv.reader(io.StringIO(content))
    names = [each.strip() for each in next(reader, [])][1:]
    if not names or len(set(names)) != len(names):
        raise ValueError("the first line has no names, or the same name twice")
    found: dict[str, dict[datetime, float]] = {name: {} for name in names}
    for row in reader:
        if row:
            moment = _time(row[0])
            for name, value in zip(names, row[1:], strict=True):
                found[name][moment] = float(value or 0)
    return found


def _of_cloudwatch(document: Mapping[str, Any]) -> dict[str, dict[datetime, float]]:
    if "Datapoints" in document:
        sums = {_time(each["Timestamp"]): float(each["Sum"]) for each in document["Datapoints"]}
        return {str(document.get("Label", "all")): sums}
    found: dict[str, dict[datetime, float]] = {}
    for each in document["MetricDataResults"]:  # the pages of one metric come one after the other
        points = zip(map(_time, each["Timestamps"]), map(float, each["Values"]), strict=True)
        found.setdefault(str(each.get("Label") or each["Id"]), {}).update(points)
    return found


def _time(text: str) -> datetime:
    """A time without a zone is UTC, and a number is in seconds since 1970."""
    if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
        return datetime.fromtimestamp(float(text), UTC)
    found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _by_minute(source: str, rows: Mapping[str, Mapping[datetime, float]]) -> Trace:
    moments = sorted({moment for values in rows.values() for moment in values})
    if len(moments) < 2:
        raise ValueError("it has fewer than two times")
    step = min(later - earlier for earlier, later in itertools.pairwise(moments))
    if step < timedelta(minutes=1) or step.total_seconds() % _MINUTE:
        raise ValueError(f"its times are {step} apart, which is not a whole number of minutes")
    minutes = int((moments[-1] - moments[0] + step).total_seconds() // _MINUTE)
    if minutes > _LONGEST_MINUTES:
        raise ValueError("it is longer than 400 days")
    if any(not math.isfinite(each) or each < 0 for values in rows.values() for each in values.values()):
        raise ValueError("it has a negative number of requests, or no requests at all")
    made = {name: tuple(_per_minute(values, moments[0], step, minutes)) for name, values in rows.items()}
    return Trace(source, moments[0], made)


def _per_minute(values: Mapping[datetime, float], start: datetime, step: timedelta, minutes: int) -> Iterator[float]:
    """The requests of each period, divided equally among its minutes. CloudWatch omits periods without requests."""
    length = int(step.total_seconds() // _MINUTE)
    for number in range(minutes // length):
        yield from [values.get(start + number * step, 0.0) / length] * length
    yield from [0.0] * (minutes % length)
