"""Universal Binary JSON, as XGBoost writes it (https://ubjson.org/type-reference/).

The elements of a typed array are skipped, because no rule looks at them: such an array is read as `Numbers`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cdk_triton.tree_models.reader.forest import FileError

__all__ = ["Numbers", "ubjson"]

_NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}
_CONSTANTS = {"Z": None, "T": True, "F": False}
_DEEPEST = 64  # XGBoost nests about ten levels


@dataclass(frozen=True)
class Numbers:
    """An array of numbers or constants that was skipped.

    Attributes:
        count: how many elements it has.
    """

    count: int


def ubjson(content: bytes) -> object:
    """Read a document.

    Raises:
        FileError: the bytes are not one whole document.
    """
    reader = _Reader(content)
    try:
        value = reader.value(reader.marker(), 0)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise FileError("is not complete UBJSON") from None
    if reader.place != len(content):
        raise FileError("has more bytes after its UBJSON")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def marker(self) -> str:
        """The next byte, as a character, after the fillers `N`."""
        while (found := chr(self._content[self.place])) == "N":
            self.place += 1
        self.place += 1
        return found

    def value(self, marker: str, depth: int) -> object:
        if depth > _DEEPEST:
            raise FileError("nests UBJSON deeper than XGBoost does")
        if marker in _NUMBERS:
            return self._number(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker in "SH":
            return self._text()
        if marker == "C":
            return self.marker()
        if marker == "[":
            return self._array(depth)
        if marker == "{":
            return self._object(depth)
        raise FileError(f"is not UBJSON: byte {self.place} is the unknown marker {marker!r}")

    def _number(self, marker: str) -> int | float:
        kind = _NUMBERS[marker]
        (found,) = struct.unpack_from(kind, self._content, self.place)
        self.place += struct.calcsize(kind)
        number: int | float = found
        return number

    def _length(self) -> int:
        marker = self.marker()
        if marker not in "iUIlL" or (length := int(self._number(marker))) < 0:
            raise FileError(f"is not UBJSON: byte {self.place} is no length")
        return length

    def _text(self) -> str:
        length = self._length()
        self._skip(length)
        return self._content[self.place - length : self.place].decode()

    def _skip(self, size: int) -> None:
        if self.place + size > len(self._content):
            raise FileError("is not complete UBJSON")
        self.place += size

    def _header(self) -> tuple[str, int | None]:
        """The type and the number of elements that follow `[` or `{`; "" and None where there are none."""
        kind = ""
        if self._content[self.place] == ord("$"):
            self.place += 1
            kind = self.marker()
        if self._content[self.place] == ord("#"):
            self.place += 1
            count = self._length()
            if count > len(self._content):
                raise FileError("is not complete UBJSON")
            return kind, count
        if kind:
            raise FileError(f"is not UBJSON: the type at byte {self.place} has no count")
        return "", None

    def _array(self, depth: int) -> object:
        kind, count = self._header()
        if count is not None and kind in _NUMBERS:
            self._skip(count * struct.calcsize(_NUMBERS[kind]))
            return Numbers(count)
        if count is not None and kind in _CONSTANTS:
            return Numbers(count)  # the elements have no bytes: a list of them may be far larger than the file
        if count is not None:
            return [self.value(kind or self.marker(), depth + 1) for _ in range(count)]
        items = []
        while (marker := self.marker()) != "]":
            items.append(self.value(marker, depth + 1))
        return items

    def _object(self, depth: int) -> object:
        kind, count = self._header()
        found: dict[str, object] = {}
        while count is None or len(found) < count:
            if count is None and self._content[self.place] == ord("}"):
                self.place += 1
                break
            key = self._text()
            found[key] = self.value(kind or self.marker(), depth + 1)
        return found
