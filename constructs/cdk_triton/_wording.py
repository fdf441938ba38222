"""Phrases that messages have in common: lists of names, and the known name that a misspelled one may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = ["did_you_mean", "in_words", "listed", "listed_in_quotes", "nearest", "quoted"]

_SIMILAR = 0.7  # of difflib
_LONGEST_QUOTE = 100
_SHOWN_OF_A_LONG_ONE = 60


def did_you_mean(value: str, known: Iterable[str], *, at_most: int = 2, cutoff: float = _SIMILAR) -> str:
    """The known values that are similar, as a question in parentheses; "" if none is."""
    found = nearest(value, known, at_most=at_most, cutoff=cutoff)
    return f" (did you mean {in_words(map(repr, found))}?)" if found else ""


def nearest(value: str, known: Iterable[str], *, at_most: int = 2, cutoff: float = _SIMILAR) -> list[str]:
    """The known values that a misspelled one may stand for, the nearest first."""
    return get_close_matches(value, list(known), n=at_most, cutoff=cutoff)


def in_words(values: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    *head, tail = values
    return f"{', '.join(head)} {last} {tail}" if head else tail


def quoted(value: object) -> str:
    """A value in quotes; a long one is cut, and followed by its length."""
    text = repr(value)
    if len(text) <= _LONGEST_QUOTE:
        return text
    closing = text[0] if text[0] in "'\"" else ""
    return f"{text[:_SHOWN_OF_A_LONG_ONE]}...{closing} ({len(str(value)):,} characters)"


def listed(names: Sequence[str], *, shown: int = 8) -> str:
    """The first names, and the number of the others: `a, b, c and 4,997 more`."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def listed_in_quotes(names: Iterable[str], *, shown: int = 8) -> str:
    """Like `listed`, each name in quotes."""
    return listed([repr(name) for name in names], shown=shown)
