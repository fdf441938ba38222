"""The times of scheduled actions: `at`, `rate`, and `cron` with the fields that most schedules have.

Sources: `Schedule` of PutScheduledAction, and "Cron expressions reference" in EventBridge's user guide.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cdk_triton.errors import LocalError

__all__ = ["is_due"]

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86400}


def is_due(expression: str, zone: str | None, created: float, minute: float) -> bool:
    """Whether a schedule is due in a minute.

    Args:
        expression: the schedule.
        zone: the name of its time zone; None for UTC.
        created: when it was created, in seconds since 1970; a rate counts from there.
        minute: the beginning of the minute, in seconds since 1970.

    Raises:
        LocalError: the expression uses something else, such as `L`, `W` or `#`.
    """
    here = datetime.fromtimestamp(minute, ZoneInfo(zone) if zone else UTC)
    kind, _, inner = expression.removesuffix(")").partition("(")
    if kind == "at":
        return here.replace(tzinfo=None) == datetime.fromisoformat(inner).replace(second=0)
    if kind == "rate":
        number, unit = inner.split()
        seconds = int(number) * _SECONDS[unit.removesuffix("s")]
        return minute >= created and (minute - created) // seconds != (minute - 60 - created) // seconds
    fields = inner.split()
    now = (here.minute, here.hour, here.day, here.month, here.isoweekday() % 7 + 1, here.year)
    lowest = (0, 0, 1, 1, 1, 1970)
    words = ((), (), (), _MONTHS, _DAYS, ())
    parts = zip(fields, now, lowest, words, strict=True)
    matching = [_matches(expression, *each) for each in parts]  # also after the first that does not match, to read all
    return all(matching)


def _matches(expression: str, field: str, value: int, lowest: int, words: tuple[str, ...]) -> bool:
    text = field.upper()
    for number, word in enumerate(words, 1):
        text = text.replace(word, str(number))
    return any(_is_in(expression, item, value, lowest) for item in text.split(","))


def _is_in(expression: str, item: str, value: int, lowest: int) -> bool:
    found = re.fullmatch(r"(\*|\?|(\d+)(?:-(\d+))?)(?:/(\d+))?", item)
    if found is None:
        raise LocalError(
            f"the local AWS does not run the schedule {expression}, because of its part {item}; it has numbers, words, "
            "ranges, lists and steps"
        )
    first = int(found[2] or lowest)
    last = int(found[3]) if found[3] else first if found[2] and not found[4] else value
    return first <= value <= last and (value - first) % int(found[4] or 1) == 0
