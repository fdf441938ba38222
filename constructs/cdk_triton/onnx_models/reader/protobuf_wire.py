"""Protobuf's wire format, as far as it takes to step over unneeded fields.

A message is a sequence of fields; each begins with its number and its length. So a file of gigabytes can be
walked from field to field without touching the weights between them.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple

__all__ = ["Field", "WireError", "fields", "varint"]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class WireError(Exception):
    """The bytes are not a protobuf message."""


class Field(NamedTuple):
    """The position of a field in the buffer.

    Attributes:
        number: the field's number in its message.
        start: the beginning of the field, with its number.
        content: the beginning of its content.
        end: the end of its content.
    """

    number: int
    start: int
    content: int
    end: int


def fields(buffer: bytes | mmap, start: int, end: int) -> Iterator[Field]:
    """The fields of the message between `start` and `end`.

    Raises:
        WireError: there is no message.
    """
    position = start
    while position < end:
        tag, content = varint(buffer, position, end)
        kind = tag & 7
        if kind == _LENGTH:
            length, content = varint(buffer, content, end)
            behind = content + length
        elif kind == _VARINT:
            behind = varint(buffer, content, end)[1]
        elif kind in (_FIXED32, _FIXED64):
            behind = content + (4 if kind == _FIXED32 else 8)
        else:
            raise WireError
        if behind > end or tag < 8:
            raise WireError
        yield Field(tag >> 3, position, content, behind)
        position = behind


def varint(buffer: bytes | mmap, position: int, end: int) -> tuple[int, int]:
    """A number, and where it ends.

    Raises:
        WireError: there is no number.
    """
    value = shift = 0
    while position < end and shift < 70:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise WireError
