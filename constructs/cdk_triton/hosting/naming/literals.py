"""Numbers and durations of a user: literals, or unresolved tokens of the CDK."""

from __future__ import annotations

import sys
from typing import Final, TypeGuard

from aws_cdk import Duration, Token

__all__ = ["MAX_WHOLE", "allowed_whole", "is_number", "is_token", "is_whole", "literal_seconds"]

MAX_WHOLE: Final = 2**31 - 1
"""The largest integer of AWS's APIs, whose type `integer` has 32 bits ("integer" in the specification of Smithy)."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number or a token. Infinity and NaN have no JSON form, and would end jsii's process."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max


def is_token(value: object) -> bool:
    """Whether a number is an unresolved CDK token (CDK encodes these as negative numbers)."""
    return is_number(value) and value < 0 and Token.is_unresolved(value)


def is_whole(value: object, least: int, most: float = MAX_WHOLE) -> bool:
    """Whether it is a whole number from `least` to `most`, or a token that may become one."""
    return is_token(value) or (isinstance(value, int) and is_number(value) and least <= value <= most)


def allowed_whole(value: object, least: int, counted: str = "") -> str:
    """What to use instead of a value that `is_whole` rejects: `a whole number of instances, at least 1`."""
    is_large = isinstance(value, int) and value > MAX_WHOLE
    kind = f"a whole number of {counted}" if counted else "a whole number"
    return f"{kind}, {least} to {MAX_WHOLE:,}" if is_large else f"{kind}, at least {least}"


def literal_seconds(duration: Duration | None) -> float | None:
    """The seconds of a duration; None for None and for a token."""
    return None if duration is None or duration.is_unresolved() else duration.to_seconds(integral=False)
