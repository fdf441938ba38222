"""The cron expressions that scaled endpoints usually have: times of day, on some days of the week."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["Cron", "cron"]

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_EVERY = ("*", "?")


@dataclass(frozen=True)
class Cron:
    """Minutes and hours of the day, and days of the week (0 is Sunday), in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    zone: ZoneInfo

    def matches(self, moment: datetime) -> bool:
        """Whether it is due in this minute."""
        here = moment.astimezone(self.zone)
        return here.minute in self.minutes and here.hour in self.hours and here.isoweekday() % 7 in self.days


def cron(expression: str, zone: str) -> Cron | None:
    """Read `cron(MINUTES HOURS ? * DAYS *)`; None for any other expression."""
    found = re.fullmatch(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)", expression)
    if found is None or any(found[each] not in _EVERY for each in (3, 4, 6)):
        return None
    parts = _numbers(found[1], 60), _numbers(found[2], 24), _days(found[5])
    try:
        return None if None in parts else Cron(*parts, ZoneInfo(zone))  # type: ignore[arg-type]  # none is None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _numbers(text: str, count: int) -> frozenset[int] | None:
    found: set[int] = set()
    for part in text.split(","):
        if part in _EVERY:
            return frozenset(range(count))
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            return None  # AWS does not document whether such a range goes around
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def _days(text: str) -> frozenset[int] | None:
    """AWS counts days from 1, which is Sunday."""
    for number, name in enumerate(_DAYS, 1):
        text = text.upper().replace(name, str(number))
    if text in _EVERY:
        return frozenset(range(7))
    numbers = _numbers(text, 8)
    return None if numbers is None else frozenset(each - 1 for each in numbers)
