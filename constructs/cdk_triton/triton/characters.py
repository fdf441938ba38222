"""What the server's parser of `config.pbtxt` refuses although Python's reads it.

The server parses with protobuf's C++ library. It takes ASCII only outside quotes, knows fewer escapes, and writes
numbers as C does. A no-break space from a web page is the fault that people really make.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["refused_characters"]

# An unclosed string is one token too: to begin again at each of its quotes would take quadratic time.
_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n]*)
    | (?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | (?P<identifier>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[0-9][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)?)
    | (?P<plus>\+)
    | (?P<stray>[^\n\t\v\f\r -~])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"""\\(?:[abfnrtv\\?'"0-7xXuU]|(?P<unknown>.))""")
_NOT_C = re.compile(r"0[bBoO]|.*_")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


def refused_characters(text: str) -> Iterator[tuple[int, str]]:
    """Where the server would stop, in the order of the text: the offset and the reason."""
    for match in _NOT_TEXT.finditer(text):
        yield match.start(), f"the character {match.group()!r} cannot stand in the file; remove it"
    for match in _TOKEN.finditer(text):
        token, start = match.group(), match.start()
        if match.lastgroup == "stray":
            yield start, f"{_called(token)} stands outside quotes, where only ASCII is read; remove it, or quote it"
        elif match.lastgroup == "plus":
            yield start, "'+' stands before a number; leave it out"
        elif match.lastgroup == "number" and _NOT_C.match(token):
            yield start, f"{token!r} is not a number for the server; write decimal digits"
        elif match.lastgroup == "string":
            for escape in _ESCAPE.finditer(token):
                if escape["unknown"] is not None:
                    offset = start + escape.start()
                    yield offset, f"{escape.group()} is no escape sequence; write two backslashes for a backslash"


def _called(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"the character U+{ord(character):04X}" + (f" ({name})" if name else "")
