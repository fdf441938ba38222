"""Values of `config.pbtxt` that the server's parser and Python's read differently, depending on their field.

Protobuf's C++ library reads every number as C does, also the number of an enum or a bool: `013` is 11. It rejects what
Python's takes: a minus before an unsigned number (even `-0`), `inff` and `1ff`, an entry of a map with two keys, and
the number of an enum beyond 32 bits. Numbers that an enum does not name are fine for both.

Source: protobuf's text_format.cc, ConsumeFieldValue, ConsumeUnsignedInteger and ConsumeDouble; tokenizer.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import TYPE_CHECKING, NamedTuple, cast

from google.protobuf.descriptor import FieldDescriptor

from cdk_triton.triton.schema import ModelConfig

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

__all__ = ["Reader", "Refused", "as_python_reads_values", "read_up_to"]

# What every difference needs; nearly every text has nothing of it. One search for all three would be slower.
_ODD_NUMBER = re.compile(
    r"""
    [\s:,;\[{<-]                     # what comes before a value
    (?: 0[0-9xX]                    # a number that is not decimal
      | [0-9]{10}                   # or may have more than 32 bits
      | [0-9.][\w.]*[fF]{2}\b       # or ends in f
      | [iInN][nNaA][fFnN]
    )
    """,
    re.VERBOSE,
)
_MINUS_ZERO = re.compile(r"-\s*0")
_GIVEN_AGAIN = re.compile(r"""(?:key|value)\s*:?\s*(?:""|''|0)""")  # an entry may have the key or value twice
_SUSPECT = _ODD_NUMBER, _MINUS_ZERO, _GIVEN_AGAIN
_TOKEN = re.compile(
    r"""
      (?P<skipped>\#[^\n]* | [\s:,;]+)
    | (?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>-?[0-9.][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)?)
    | (?P<bracket>.)
    """,
    re.VERBOSE,
)
_OCTAL_OR_HEX = re.compile(r"-?(?:0[0-7]+|0[xX][0-9a-fA-F]+)")
_INTEGER = re.compile(r"-?(?:0[0-7]*|[1-9][0-9]*|0[xX][0-9a-fA-F]+)")
_NOT_FLOAT = re.compile(r"-?(?:inf(?:inity)?f|nanf|(?!0x).*ff)", re.IGNORECASE)
_UNSIGNED = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
_FLOAT = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_ENUM_OR_BOOL = (FieldDescriptor.CPPTYPE_ENUM, FieldDescriptor.CPPTYPE_BOOL)
_DIGITS = 20  # of any number of 64 bits


class Refused(Exception):  # noqa: N818  # caught where it becomes a ModelConfigError
    """A fault for the server's parser: its place in the text, and the reason."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


class _Value(NamedTuple):
    field: FieldDescriptor
    start: int
    text: str


@dataclass
class _Block:
    """A message, as far as it is read: None where the schema does not have it."""

    message: Descriptor | None
    field: FieldDescriptor | None = None
    names: set[str] = attribute(default_factory=set)
    has_name: bool = False  # what comes next is a value
    is_list: bool = False
    start: int | None = None  # of its brace


def as_python_reads_values(text: str) -> str:
    """The same configuration, line by line and column by column, so that Python's parser reads its numbers.

    Args:
        text: what `as_python_reads_it` gave.

    Raises:
        Refused: the text contains a value that Python's parser takes and the server's does not.
    """
    if not any(suspect.search(text) for suspect in _SUSPECT):
        return text
    pieces, end = [], 0
    for value in _values(text):
        _check(value)
        if value.field.cpp_type in _ENUM_OR_BOOL and _OCTAL_OR_HEX.fullmatch(value.text):
            pieces += [text[end : value.start], f"{_number(value.text):>{len(value.text)}}"]
            end = value.start + len(value.text)
    return "".join([*pieces, text[end:]])


def _check(value: _Value) -> None:
    kind = value.field.cpp_type
    if kind in _UNSIGNED and value.text[0] == "-":
        raise Refused(
            value.start, f"{value.text!r} has a minus, but {value.field.name} takes no negative number; write 0 or more"
        )
    if kind in _FLOAT and _NOT_FLOAT.fullmatch(value.text):
        raise Refused(value.start, f"{value.text!r} is not a number for the server; remove the last 'f'")
    if kind == FieldDescriptor.CPPTYPE_ENUM and _INTEGER.fullmatch(value.text):
        number = _number(value.text)
        if not -(2**31) <= number < 2**31:
            raise Refused(value.start, f"Integer out of range ({value.text}); write the name of the value")


def _number(text: str) -> int:
    """A number as C reads it; what has too many digits for any field is just large."""
    digits = text.lstrip("-")
    if len(digits) > _DIGITS + len("0x"):
        size = 2**64
    else:
        size = int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10)
    return -size if text[0] == "-" else size


class Reader:
    """Reads token after token, up to where the text makes no sense any more.

    Attributes:
        is_lost: whether it makes no sense any more.
        comma: the place of a comma that follows the last token, or None.
    """

    def __init__(self) -> None:
        self._blocks = [_Block(cast("Descriptor", ModelConfig.DESCRIPTOR))]
        self.is_lost = False
        self.comma: int | None = None

    @property
    def pending_field(self) -> FieldDescriptor | None:
        """The field whose value is expected next; None where that is not known."""
        block = self._blocks[-1]
        return block.field if block.has_name else None

    @property
    def open_block(self) -> int | None:
        """The place of the innermost brace that is not closed; None where all are closed."""
        return self._blocks[-1].start

    def take(self, match: re.Match[str]) -> _Value | None:
        """Read a token; a number or a word that is a value is the result."""
        kind, block = match.lastgroup, self._blocks[-1]
        if kind == "skipped":
            if match.group()[0] != "#" and "," in match.group():
                self.comma = match.start() + match.group().index(",")
            return None
        self.comma = None
        if kind == "word" and not block.has_name:
            _begin(block, match)
        elif kind in ("word", "number", "string") and block.has_name:
            block.has_name = block.is_list
            if block.field is not None and kind != "string":
                return _Value(block.field, match.start(), match.group())
        elif kind != "string":  # two strings in a row are one
            self.is_lost = not _nest(self._blocks, match)
        return None


def _values(text: str) -> Iterator[_Value]:
    """The numbers and words that are values."""
    reader = Reader()
    for match in _TOKEN.finditer(text):
        if (value := reader.take(match)) is not None:
            yield value
        if reader.is_lost:
            return


def read_up_to(text: str, offset: int) -> Reader:
    """Read the tokens before a place in a text, or up to where they make no sense any more."""
    reader = Reader()
    for match in _TOKEN.finditer(text):
        if match.start() >= offset or reader.is_lost:
            break
        try:
            reader.take(match)
        except Refused:  # the parser complains of it too
            break
    return reader


def _nest(blocks: list[_Block], match: re.Match[str]) -> bool:
    """Open or close a block or a list; False where it makes no sense."""
    block, bracket = blocks[-1], match.group()
    if bracket in "{<" and block.has_name:
        block.has_name = block.is_list
        blocks.append(_Block(block.field.message_type if block.field is not None else None, start=match.start()))
    elif bracket in "}>" and len(blocks) > 1:
        blocks.pop()
    elif bracket == "[" and block.has_name:
        block.is_list = True
    elif bracket == "]" and block.is_list:
        block.is_list = block.has_name = False
    else:
        return False
    return True


def _begin(block: _Block, match: re.Match[str]) -> None:
    """Take the name of a field."""
    name = match.group()
    block.field = None if block.message is None else block.message.fields_by_name.get(name)
    block.has_name = True
    if block.message is not None and block.message.GetOptions().map_entry and name in block.names:
        raise Refused(match.start(), f"an entry of a map has '{name}' twice; write a separate entry for each key")
    block.names.add(name)
