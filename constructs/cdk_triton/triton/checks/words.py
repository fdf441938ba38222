"""Words that the messages of several rules need."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed"]


def listed(names: Sequence[str], *, shown: int = 8) -> str:
    """The names, and not a thousand of them: `a, b, c and 4,997 more`."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
