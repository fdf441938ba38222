"""The value that a reader returns instead of a file's contents."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Unreadable"]


@dataclass(frozen=True)
class Unreadable:
    """A file does not have the format that its name implies.

    Attributes:
        reason: the rest of a sentence that begins with the file's name: `is empty`.
    """

    reason: str
