"""Phrases that messages have in common: lists of names, and the known name that a misspelled one may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = ["did_you_mean", "in_words", "listed"]


def did_you_mean(value: str, known: Iterable[str], *, at_most: int = 2) -> str:
    """The nearest known values in parentheses, as a question; "" if none is near."""
    nearest = get_close_matches(value, list(known), n=at_most, cutoff=0.7)
    return f" (did you mean {in_words(map(repr, nearest))}?)" if nearest else ""


def in_words(values: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    *head, tail = values
    return f"{', '.join(head)} {last} {tail}" if head else tail


def listed(names: Sequence[str], *, shown: int = 8) -> str:
    """The names, and not a thousand of them: `a, b, c and 4,997 more`."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
