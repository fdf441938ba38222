"""A reader of protobuf's text format that gives the place of each field of a `config.pbtxt`.

Protobuf's own parser decides whether a text is a configuration, and which values it has. This reader finds places: of
findings, of values that the server's parser reads differently, and of a fault with what stands around it. It passes
over what makes no sense, because the fields behind a fault have places too.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

__all__ = [
    "TOKEN",
    "Reader",
    "TextFormatError",
    "Token",
    "Value",
    "decoded",
    "line_and_column",
    "repeated_keys",
    "tokens",
]

# As protobuf's parser in Python splits a text, because it complains of the place where a token begins.
TOKEN = re.compile(
    r"""
      \#[^\n]*
    | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<unclosed>["'][^\n]*)
    | (?P<name>[A-Za-z_][0-9A-Za-z_+-]*)
    | (?P<number>(?:[0-9+-]|\.[0-9])[0-9A-Za-z_.+-]*)
    | (?P<mark>[^\n\t\v\f\r\ ])
    """,
    re.VERBOSE,
)
_KEY = re.compile(r"""\bkey\s*:?\s*["']""")
_AFTER_MINUS = frozenset(f"{string.ascii_letters}{string.digits}.")


def decoded(content: bytes) -> str:
    """The text of a file. A byte that is not UTF-8 is one of U+DC80 to U+DCFF, as in Python's names of files."""
    return content.decode("utf-8", errors="surrogateescape")


class TextFormatError(Exception):
    """A fault in the text of a configuration; `parse_model_config` adds the file to it.

    Attributes:
        reason: the fault.
        fix: what to do, or "".
        offset: the place of the fault in the text.
    """

    def __init__(self, reason: str, fix: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.offset = offset


class Token(NamedTuple):
    """A name, a number, a string, or another character.

    Attributes:
        kind: the group of `TOKEN`; `unclosed` is a string without its last quote.
        text: the characters.
        start: the place of the first one.
        minus: the place of the minus if spaces or comments separate it from the number, otherwise `start`.
    """

    kind: str
    text: str
    start: int
    minus: int


def tokens(text: str) -> Iterator[Token]:
    """Split a text. A minus that stands by itself moves to what follows it, because the server reads `- 1` as -1."""
    last: Token | None = None
    for match in TOKEN.finditer(text):
        if match.lastgroup is None:  # a comment
            continue
        token = Token(match.lastgroup, match.group(), match.start(), match.start())
        if last is not None:
            if last.text[-1] == "-" and last.kind != "unclosed" and token.text[0] in _AFTER_MINUS:
                minus = last.start + len(last.text) - 1
                token = Token("number", f"-{token.text}", token.start - 1, minus)
                last = last._replace(text=last.text[:-1])
            if last.text:
                yield last
        last = token
    if last is not None:
        yield last


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line, and the character in the line, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@dataclass(slots=True)
class Field:
    """A field of a block, with all its values; `descriptor` is None if the schema does not have the field."""

    descriptor: FieldDescriptor | None = None
    names: list[Token] = attribute(default_factory=list)
    values: list[Value] = attribute(default_factory=list)


@dataclass(slots=True)
class Value:
    """A value of a field; a block is one, and so is the whole file.

    Attributes:
        token: the only token, or the opening brace.
        place: the name of the field, or in a list the value itself.
        message: the type of a block that the schema has.
        fields: the fields of a block by name.
        field: the field that was read last.
        expects: what comes next in a block: the name of a field, or more of `field`. A comma belongs to a list.
        in_list: whether a list of `field` is open.
    """

    token: Token
    place: Token
    message: Descriptor | None = None
    fields: dict[str, Field] = attribute(default_factory=dict)
    field: Field = attribute(default_factory=Field)
    expects: Literal["name", "colon", "value", "comma"] = "name"
    in_list: bool = False


class Reader:
    """Reads token after token.

    Attributes:
        open: the file, and the blocks in it that are not closed.
        last: the last token.
        is_lost: whether a token made no sense.
    """

    def __init__(self) -> None:
        from cdk_triton.triton.schema import ModelConfig  # it imports protobuf, which `decoded` does not need

        self.last = Token("file", "", 0, 0)
        self.open = [Value(self.last, self.last, cast("Descriptor", ModelConfig.DESCRIPTOR))]
        self.is_lost = False

    def take(self, token: Token) -> FieldDescriptor | None:
        """Read a token, and return the field if it is the value of one, and not a block."""
        self.last = token
        block = self.open[-1]
        if token.text in ("}", ">") and len(self.open) > 1:
            self.open.pop()
        elif token.kind in ("string", "unclosed") and block.expects in ("name", "comma"):
            pass  # two strings in a row are one
        elif block.expects == "name":
            self._take_name(token, block)
        elif token.text in (":", ",", ";"):
            block.expects = "value"
        elif token.text == "[" and not block.in_list:
            block.expects, block.in_list = "value", True
        elif token.text == "]" and block.in_list:
            block.expects, block.in_list = "name", False
        elif token.kind == "mark" and token.text not in ("{", "<"):
            self.is_lost = True
        else:
            return self._take_value(token, block)
        return None

    def _take_name(self, token: Token, block: Value) -> None:
        if token.kind in ("name", "number"):
            if token.text not in block.fields:
                descriptor = None if block.message is None else block.message.fields_by_name.get(token.text)
                block.fields[token.text] = Field(descriptor)
            block.field = block.fields[token.text]
            block.field.names.append(token)
            block.expects = "colon"
        elif token.text not in (",", ";"):
            self.is_lost = True

    def _take_value(self, token: Token, block: Value) -> FieldDescriptor | None:
        field = block.field
        value = Value(token, token if block.in_list else field.names[-1])
        field.values.append(value)
        block.expects = "comma" if block.in_list else "name"
        if token.kind != "mark":
            return field.descriptor
        value.message = None if field.descriptor is None else field.descriptor.message_type
        self.open.append(value)
        return None


def repeated_keys(text: str, config: Message) -> Iterator[tuple[str, str]]:
    """The keys that a map has more than once: the field as in a finding, `step[0].input_map["IN"]`, and the key.

    Args:
        text: a valid configuration.
        config: the same, parsed; its maps keep one entry of each key.
    """
    if len(_KEY.findall(text)) == _text_keys(config):
        return  # to split a text into tokens takes long
    reader, pieces = Reader(), list(tokens(text))
    for token in pieces:
        reader.take(token)
    joined = {one.start for one, other in pairwise(pieces) if one.kind == other.kind == "string"}
    yield from _repeated(reader.open[0], "", joined)


def _text_keys(message: Message) -> int:
    """How many keys that are texts the maps of a message have, at any depth."""
    count = 0
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            count += sum(isinstance(key, str) and key != "" for key in value)
        else:
            count += sum(map(_text_keys, value if descriptor.is_repeated else (value,)))
    return count


def _repeated(block: Value, prefix: str, joined: set[int]) -> Iterator[tuple[str, str]]:
    """The repeated keys in a block; a key that is joined from several strings is not read."""
    for name, field in block.fields.items():
        descriptor = field.descriptor
        if descriptor is None or descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            keys = [entry.fields["key"].values[-1].token for entry in field.values if "key" in entry.fields]
            count = Counter(key.text[1:-1] for key in keys if key.kind == "string" and key.start not in joined)
            yield from ((f'{prefix}{name}["{key}"]', key) for key, times in count.items() if times > 1)
            continue
        for index, value in enumerate(field.values):
            yield from _repeated(
                value, f"{prefix}{name}[{index}]." if descriptor.is_repeated else f"{prefix}{name}.", joined
            )
