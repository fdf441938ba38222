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
        cut_off: the length of the last element and how many bytes of it are there, if it is cut off.
        rest: the bytes after them, fewer than a length has.
        is_complete: whether the file was read to its end.
    """

    count: int
    rest: int
    is_complete: bool
    cut_off: tuple[int, int] | None = None


def text_elements(path: Path) -> TextElements:
    """Count the elements of a file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            count = position = length = 0
            while size - position >= _LENGTH and count < _MOST:
                length = int.from_bytes(file.read(_LENGTH), "little")
                position += _LENGTH + length
                file.seek(position)
                count += 1
    except OSError:
        return TextElements(0, 0, is_complete=False)
    cut_off = (length, length - (position - size)) if position > size else None
    return TextElements(count, max(0, size - position), size - position < _LENGTH, cut_off)
