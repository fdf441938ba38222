"""Limits that change at given times. Invalid schedules are rejected at synth, not during the deployment."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from aws_cdk import TimeZone
from aws_cdk import aws_applicationautoscaling as autoscaling

from cdk_triton._checked import checked
from cdk_triton._tokens import has_token
from cdk_triton._wording import did_you_mean, nearest, quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.scaling.checks import check_scheduled

__all__ = ["ScheduledScaling", "check_schedule"]


class ScheduledScaling:
    """The method of `ScalableInstanceCount` and `ScalableCopyCount` for limits that follow the clock.

    Attributes:
        scalable_target: see these classes.
        min_capacity: see these classes.
        max_capacity: see these classes.
    """

    scalable_target: autoscaling.ScalableTarget
    min_capacity: int
    max_capacity: int
    _what: str
    _counted: str
    """The word for what is scaled: `instances` or `copies`."""
    _way_to_zero: str | None
    """How a user gets a minimum of 0; None if that is impossible."""
    _scheduled: set[str]

    @checked
    def scale_on_schedule(
        self,
        id: str,
        *,
        schedule: autoscaling.Schedule,
        min_capacity: int | None = None,
        max_capacity: int | None = None,
        time_zone: TimeZone | None = None,
    ) -> None:
        """Change the limits at given times. Between these times the scaling policies continue to scale.

        Args:
            id: the name of the action, unique within the variant or component: 1 to 256 characters other than `:`, `/`,
                `|` and control characters.
            schedule: the times of the change, in UTC unless you give a time zone.
            min_capacity: the fewest instances or copies from then on; None does not change the limit.
            max_capacity: the most instances or copies from then on; None does not change the limit.
            time_zone: the time zone of a `cron` or `at` schedule. The schedule follows daylight saving time.

        Raises:
            ConfigurationError: no limit is given; the limits contradict each other, or allow zero instances although
                the limits of the variant or component do not; the schedule or its time zone is not valid, or the
                schedule is a rate with a time zone; or the id cannot be the name of an action, or another schedule has
                it.
        """
        what = f"schedule {quoted(id)} of {self._what}"
        if not _NAME.fullmatch(id) or id != id.strip(" "):
            raise ConfigurationError(
                f"{what} has an id that Application Auto Scaling rejects as the name of an action: use 1 to 256 "
                "characters other than ':', '/', '|' and control characters, without a space at either end"
            )
        if id in self._scheduled:
            raise ConfigurationError(f"{self._what} has two schedules called {id!r}: give each a name of its own")
        if min_capacity is None and max_capacity is None:
            raise ConfigurationError(f"{what} changes nothing: give min_capacity, max_capacity or both")
        check_schedule(what, schedule.expression_string, time_zone)
        if time_zone is not None:
            _check_zone(what, time_zone.timezone_name)
        least = min(self.min_capacity, 1)
        standing = (self.min_capacity, self.max_capacity)
        check_scheduled(
            what,
            (min_capacity, max_capacity),
            standing,
            least=least,
            why=None if self._way_to_zero is None else f", or {self._way_to_zero} to scale to zero",
            counted=self._counted,
        )
        self._scheduled.add(id)
        self.scalable_target.scale_on_schedule(
            id, schedule=schedule, min_capacity=min_capacity, max_capacity=max_capacity, time_zone=time_zone
        )


class _Field(NamedTuple):
    """A field of a cron expression: its range, its words, and the special forms that it accepts."""

    name: str
    low: int
    high: int
    words: str = ""
    special: str = ""


_DAYS: Final = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELDS: Final = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of month", 1, 31, special=r"\?|LW?|\d+W"),
    _Field("month", 1, 12, "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"),
    _Field("day of week", 1, 7, _DAYS, special=rf"\?|(\d+|{_DAYS})?L|(\d+|{_DAYS})#[1-5]"),
    _Field("year", 1970, 2199),
)

_NAME: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f:/|]{1,256}")
"""The characters of an action's name (ScheduledActionName of PutScheduledAction), which no space begins or ends."""

_OLD_ZONE: Final = "US/Pacific"
"""A name that the database keeps for compatibility, in its file `backward`."""

_EVERY_MORNING: Final = "cron(0 7 * * ? *)"
_RATE: Final = re.compile(r"rate\(\s*[1-9]\d*\s+(minute|hour|day)s?\s*\)")


def check_schedule(what: str, expression: str, time_zone: TimeZone | None) -> None:
    """Reject an expression that Application Auto Scaling does not accept; a token passes.

    It takes "at expressions", "rate expressions" and "cron expressions" (`Schedule` of PutScheduledAction). Numbers,
    words and wildcards of the six fields are those of "Cron expressions reference" in EventBridge's user guide, which
    the guide of Application Auto Scaling cites. The reference requires `?` in one of the two day fields. That is not
    checked here, because an example of the citing guide lacks it.

    Raises:
        ConfigurationError: the expression is not a `cron`, an `at` or a `rate`; a field of `cron` is not what the
            reference describes; the time of `at` does not exist; or a rate has a time zone.
    """
    if has_token(expression):
        return
    if time_zone is not None and expression.startswith("rate("):
        raise ConfigurationError(
            f"{what} has the time zone {time_zone.timezone_name}, but {expression} has no time of day: use "
            "Schedule.cron or Schedule.at, or remove time_zone"
        )
    kind, _, inner = expression.partition("(")
    if kind == "at" and inner.endswith(")"):
        _check_time(what, expression, inner.removesuffix(")"))
    elif kind == "cron" and inner.endswith(")") and len(inner.split()) == len(_FIELDS):
        for field, text in zip(_FIELDS, inner.removesuffix(")").split(), strict=True):
            _check_field(what, expression, field, text)
    elif not _RATE.fullmatch(expression):
        raise ConfigurationError(
            f"{what} is {quoted(expression)}, but Application Auto Scaling takes rate(…), at(…), or cron(…) with the "
            f"six fields {', '.join(field.name for field in _FIELDS)}: write {_suggestion(expression)}"
        )


def _check_zone(what: str, name: str) -> None:
    """Reject a name that is certainly not one of the database of time zones.

    The database of this machine may be missing, incomplete (Debian 13 has the names of `_OLD_ZONE`'s kind in a package
    of their own) or older than the name. A name that is newer has a `/`, and resembles no other.
    """
    known = _zones(zoneinfo.TZPATH)
    if has_token(name) or name in known or _OLD_ZONE not in known:
        return
    if "/" not in name or nearest(name, known):
        raise ConfigurationError(
            f"{what} has the time zone {quoted(name)}{did_you_mean(name, known)}, but Application Auto Scaling takes "
            "names of IANA time zones only: use one such as TimeZone.EUROPE_BERLIN"
        )


@cache
def _zones(_path: tuple[str, ...]) -> AbstractSet[str]:
    """The names in the databases of the search path, which takes a tenth of a second or more to read."""
    return zoneinfo.available_timezones()


def _check_time(what: str, expression: str, text: str) -> None:
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        raise ConfigurationError(
            f"{what} is {quoted(expression)}, which does not contain a valid date and time: write a time such as "
            "at(2027-01-31T07:00:00)"
        ) from None


def _check_field(what: str, expression: str, field: _Field, text: str) -> None:
    one = r"\d+" + (f"|{field.words}" if field.words else "")
    several = rf"(\*|({one})(-({one}))?)(/\d+)?"
    for item in text.split(","):
        if not re.fullmatch(several + (f"|{field.special}" if field.special else ""), item, re.IGNORECASE):
            words = f", words from {field.words[:3]} to {field.words[-3:]}" if field.words else ""
            raise ConfigurationError(
                f"{what} is {quoted(expression)}, with {quoted(item)} as {field.name}: use numbers from {field.low} "
                f"to {field.high}{words}, or '*'"
            )
        for number in re.findall(r"(?<![/#\d])\d+", item):
            if not field.low <= int(number) <= field.high:
                raise ConfigurationError(
                    f"{what} is {expression}, with the {field.name} {number}: use {field.low} to {field.high}"
                )


def _suggestion(expression: str) -> str:
    """Suggest a valid expression, for example for a crontab line with five fields."""
    fields = expression.removeprefix("cron(").removesuffix(")").split()
    if len(fields) == len(_FIELDS) - 1 and fields[-1] == "*":
        return f"cron({' '.join(fields[:-1])} ? *)"
    return f"{_EVERY_MORNING} for each day at 7"
