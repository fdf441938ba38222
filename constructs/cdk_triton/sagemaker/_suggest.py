"""Turning what does exist into the end of an error message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "in_words"]


def did_you_mean(value: str, known: Iterable[str]) -> str:
    """The one or two nearest known values in parentheses, as a question, or nothing where none is near."""
    nearest = get_close_matches(value, list(known), n=2, cutoff=0.7)
    return f" (did you mean {in_words(map(repr, nearest))}?)" if nearest else ""


def in_words(values: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    *head, tail = values
    return f"{', '.join(head)} {last} {tail}" if head else tail
