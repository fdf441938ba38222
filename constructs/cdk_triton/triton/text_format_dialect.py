"""Where the server's parser of `config.pbtxt` and Python's differ.

The server parses with protobuf's C++ library. It takes ASCII only outside quotes, knows fewer escapes, and writes
numbers as C does: `refused_characters`. A no-break space from a web page is the fault that people really make. In
quotes and comments it takes any byte, UTF-8 or not, and a space between a minus and its number: `as_python_reads_it`.

A byte that is not UTF-8 stands in a text as one of U+DC80 to U+DCFF (`decoded`), as in Python's file names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["as_python_reads_it", "decoded", "refused_characters"]

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
# What no fault below can do without; nearly every text is done with these. One search for both would be slower.
_ODD_CHARACTER = re.compile(r"[^\n\t\v\f\r -*,-\[\]-~]")
_ODD_NUMBER = re.compile(r"\b(?:0[bBoO]|[0-9][\w.]*_)")
_ESCAPE = re.compile(r"""\\(?:[abfnrtv\\?'"0-7xXuU]|(?P<unknown>.))""")
_NOT_C = re.compile(r"0[bBoO]|.*_")
_NOT_TEXT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF  # of those that are not UTF-8
_AS_LATIN_1 = {_FIRST_BYTE + number: 0x80 + number for number in range(_LAST_BYTE - _FIRST_BYTE + 1)}
_LOOSE_MINUS = re.compile(
    r"""
      (?P<other>\#[^\n]* | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?)
    | -(?P<space>\s+)(?=[0-9.a-zA-Z])
    """,
    re.VERBOSE,
)


def decoded(content: bytes) -> str:
    """The text of a file, whatever its bytes are."""
    return content.decode("utf-8", errors="surrogateescape")


def as_python_reads_it(text: str) -> str:
    """The same configuration, line by line and column by column, so that Python's parser reads it as the server does.

    A byte that is not UTF-8 becomes the character that it is in Latin-1, and a minus moves to its number.
    """
    if not text.isascii():
        text = text.translate(_AS_LATIN_1)
    if re.search(r"-\s", text):
        text = _LOOSE_MINUS.sub(lambda match: match["other"] or f"{match['space']}-", text)
    return text


def refused_characters(text: str) -> Iterator[tuple[int, str]]:
    """Where the server would stop, in the order of the text: the offset and the reason."""
    is_suspect = _ODD_CHARACTER.search(text) or _ODD_NUMBER.search(text)
    return _refused_characters(text) if is_suspect else iter(())


def _refused_characters(text: str) -> Iterator[tuple[int, str]]:
    for match in _NOT_TEXT.finditer(text):
        yield match.start(), f"the character {match.group()!r} cannot stand in the file; remove it"
    for match in _TOKEN.finditer(text):
        token, start = match.group(), match.start()
        if match.group() == "\ufeff" and start == 0:
            yield start, "the file begins with a byte-order mark; save it as UTF-8 without one"
        elif match.lastgroup == "stray":
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
    if _FIRST_BYTE <= ord(character) <= _LAST_BYTE:
        return f"the byte 0x{ord(character) & 0xFF:02x}, which is not UTF-8,"
    name = unicodedata.name(character, "")
    return f"the character U+{ord(character):04X}" + (f" ({name})" if name else "")
