"""Did you mean: the name that a misspelt one may stand for."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["Suggestions"]


class Suggestions:
    """Finds similar names, with a limited number of comparisons: a repository may have thousands of names."""

    def __init__(self, comparisons: int = 20_000) -> None:
        self._left = comparisons

    @property
    def are_used_up(self) -> bool:
        """Whether the comparisons are used up."""
        return self._left < 0

    def closest(self, name: str, known: Collection[str], *, other_than: str | None = None) -> str | None:
        """The known name most similar to the given one; None if none is similar, or the comparisons are used up."""
        self._left -= len(known)
        if self.are_used_up:
            return None
        return next((close for close in get_close_matches(name, known, n=2) if close != other_than), None)
