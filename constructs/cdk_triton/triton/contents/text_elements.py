"""The elements of a tensor of text as Triton stores them: four bytes with the length, and as many bytes of text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["TextElements", "text_elements"]

_LENGTH = 4
_MOST = 100_000  # no longer file is counted to its end


@dataclass(frozen=True)
class TextElements:
    """How a file divides into elements.

    Attributes:
        count: the elements; the last may be cut off.
        rest: the bytes after them, fewer than a length has.
        is_complete: whether the file was read to its end.
    """

    count: int
    rest: int
    is_complete: bool


def text_elements(path: Path) -> TextElements:
    """Count the elements of a file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            count = position = 0
            while size - position >= _LENGTH and count < _MOST:
                position += _LENGTH + int.from_bytes(file.read(_LENGTH), "little")
                file.seek(position)
                count += 1
    except OSError:
        return TextElements(0, 0, is_complete=False)
    return TextElements(count, max(0, size - position), is_complete=size - position < _LENGTH)
