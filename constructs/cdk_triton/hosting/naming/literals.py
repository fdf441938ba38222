"""Numbers and durations of a user: literals, or unresolved tokens of the CDK."""

from __future__ import annotations

import math
from typing import TypeGuard

from aws_cdk import Duration, Token

__all__ = ["is_number", "is_token", "is_whole", "literal_seconds"]


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number or a token. Infinity and NaN have no JSON form, and would end jsii's process."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_token(value: object) -> bool:
    """Whether a number is an unresolved CDK token (CDK encodes these as negative numbers)."""
    return is_number(value) and value < 0 and Token.is_unresolved(value)


def is_whole(value: object, least: int, most: float = math.inf) -> bool:
    """Whether it is a whole number from `least` to `most`, or a token that may become one."""
    return is_token(value) or (isinstance(value, int) and is_number(value) and least <= value <= most)


def literal_seconds(duration: Duration | None) -> float | None:
    """The seconds of a duration; None for None and for a token."""
    return None if duration is None or duration.is_unresolved() else duration.to_seconds(integral=False)
