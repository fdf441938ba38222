"""The value of an expression in a Python model: a text, a path in the repository, an object in JSON, or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

__all__ = ["OPEN", "OTHER", "Message", "Place", "Text", "joined", "may_hold", "unknown"]

OPEN: Final = object()
"""A value that may hold the model or the configuration, such as one of its lists."""

OTHER: Final = object()
"""A value that nothing is known of, except that no code gets at the model or the configuration by it."""


@dataclass(frozen=True)
class Message:
    """An object in JSON.

    Attributes:
        known: the values that are known.
        others: the names that may be there with other values.
    """

    known: Mapping[str, Any]
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Text:
    """A text that is not known, such as the configuration in JSON."""

    is_config: bool = False


@dataclass(frozen=True)
class Place:
    """A path in the repository, as a text or as a `Path`."""

    text: str

    @property
    def parent(self) -> Place:
        """The directory above."""
        return Place(str(PurePosixPath(self.text).parent))


def may_hold(value: Any) -> bool:
    """Whether a value may be, or contain, something that is known and can be changed."""
    return value is OPEN or isinstance(value, Message | list)


def unknown(parts: Iterable[Any]) -> Any:
    """A value made of these parts: `OPEN` if one of them may be changed through it, otherwise `OTHER`."""
    return OPEN if any(map(may_hold, parts)) else OTHER


def joined(left: Any, right: Any, *, is_path: bool) -> Any:
    """Two parts of a path, or of a text."""
    match left, right:
        case Place(before), (str(after) | Place(after)):
            if is_path and not after.startswith("/"):
                return Place(f"{before}/{after}")
            return OTHER if is_path else Place(f"{before}{after}")
        case "", (str() | Place()) if not is_path:
            return right
        case str(), str() if not is_path:
            return left + right
    return unknown([left, right])
