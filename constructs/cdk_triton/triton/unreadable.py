"""The value that a reader returns instead of a file's contents."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Unreadable"]


@dataclass(frozen=True)
class Unreadable:
    """A file does not have the form that belongs to its name.

    Attributes:
        reason: half a sentence, which follows the file's name: `is empty`.
    """

    reason: str
