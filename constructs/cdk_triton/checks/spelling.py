"""Did you mean: the name that a misspelt one may stand for."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["Suggestions"]


class Suggestions:
    """Looks for similar names until that has taken long enough: a repository may have thousands of faults and names."""

    def __init__(self, comparisons: int = 20_000) -> None:
        self._left = comparisons

    @property
    def are_used_up(self) -> bool:
        """Whether it has taken long enough."""
        return self._left < 0

    def closest(self, name: str, known: Collection[str], *, other_than: str | None = None) -> str | None:
        """The known name that is most like the given one; None where none is like it, or after too many questions."""
        self._left -= len(known)
        if self.are_used_up:
            return None
        return next((close for close in get_close_matches(name, known, n=2) if close != other_than), None)
