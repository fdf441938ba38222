"""The differences between the server's parser of `config.pbtxt` and Python's.

The server parses with protobuf's C++ library. It takes ASCII only outside quotes, has fewer escapes, and writes
numbers as C does: `refused_characters`. A no-break space from a web page is the fault that people really make. In
quotes and comments it takes any byte, UTF-8 or not, in quotes any byte as an escape, and a space between a minus and
its number: `as_python_reads_it`. `cdk_triton.triton.text_format_values` reads values that depend on the field.

A text represents a byte that is not UTF-8 as one of U+DC80 to U+DCFF (`decoded`), as Python's file names do.
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
_ODD_NUMBER = re.compile(r"[0-9](?<!\w.)(?:(?<=0)[bBoO]|[\w.]*_)")  # to look for digits first is three times faster
_ESCAPE = re.compile(r"""\\(?:[abfnrtv\\?'"0-7]|x[0-9a-fA-F]|u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}|(?P<unknown>.))""")
_NOT_C = re.compile(r"0[bBoO]|.*_")
_NOT_TEXT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF  # of those that are not UTF-8
_AS_LATIN_1 = {_FIRST_BYTE + number: 0x80 + number for number in range(_LAST_BYTE - _FIRST_BYTE + 1)}
# What Python's parser may read otherwise than the server does, and every escape with its parts.
_AS_BYTES = re.compile(r"\\(?:[2-7][0-7]{2}|[xuU?])")
_ESCAPED = re.compile(
    r"""
      \\(?:
        (?P<octal>[0-7]{1,3})
      | x(?P<hex>[0-9a-fA-F]{1,2})
      | (?: u(?P<short>[0-9a-fA-F]{4}) | U(?P<long>[0-9a-fA-F]{8}) )
        (?: (?: (?<=u[dD][89abAB]..) | (?<=U0000[dD][89abAB]..) )\\u(?P<second>[dD][c-fC-F][0-9a-fA-F]{2}) )?
      | (?P<other>.)
      )
    """,
    re.VERBOSE,
)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLOSED = re.compile(r"""(["'])(?:\\.|[^\\])*\1""")
_LAST_CODE_POINT = 0x10FFFF
_LOOSE_MINUS = re.compile(
    r"""
      (?P<other>\#[^\n]* | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?)
    | -(?P<space>(?:\s|\#[^\n]*\n)+)(?=[0-9.a-zA-Z])
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
    if _AS_BYTES.search(text):
        text = _TOKEN.sub(lambda match: _unescaped(match.group()) if match["string"] else match.group(), text)
    if re.search(r"-[\s#]", text):
        text = _LOOSE_MINUS.sub(lambda match: match["other"] or f"{match['space']}-", text)
    return text


def _unescaped(string: str) -> str:
    r"""A text in quotes as Python's parser has to read it: no longer than before, and filled up with blanks.

    The server's escapes are bytes: `\400` is `\000`, two halves of a surrogate pair are one character, and one half
    is three bytes.
    """
    quote, body = string[0], string[1:-1]
    if not _AS_BYTES.search(string) or not _CLOSED.fullmatch(string):
        return string
    content = _ESCAPED.sub(lambda match: _meant(match).decode("utf-8", errors="surrogateescape"), body)
    read = content.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="surrogateescape")
    written = re.sub(rf"[\\{quote}]", r"\\\g<0>", read.translate(_AS_LATIN_1)).replace("\n", r"\n")
    written = re.sub("\0(?=[0-7])", r"\\000", written).replace("\0", r"\0")
    return f"{quote}{written}{quote}".ljust(len(string))


def _meant(escape: re.Match[str]) -> bytes:
    """The bytes that the server makes of an escape."""
    if octal := escape["octal"]:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal := escape["hex"]:
        return bytes([int(hexadecimal, 16)])
    if number := escape["long"] or escape["short"]:
        point = int(number, 16)
        if escape["second"]:
            point = 0x10000 + (point - 0xD800) * 0x400 + int(escape["second"], 16) - 0xDC00
        character = chr(point) if point <= _LAST_CODE_POINT else "\N{REPLACEMENT CHARACTER}"
        return character.encode("utf-8", errors="surrogatepass")
    return _SIMPLE_ESCAPES.get(escape["other"], escape["other"]).encode()


def refused_characters(text: str) -> Iterator[tuple[int, str]]:
    """The places where the server would stop, in the order of the text: the offset and the reason."""
    is_suspect = _ODD_CHARACTER.search(text) or _ODD_NUMBER.search(text)
    return _refused_characters(text) if is_suspect else iter(())


def _refused_characters(text: str) -> Iterator[tuple[int, str]]:
    for match in _NOT_TEXT.finditer(text):
        yield match.start(), f"the character {match.group()!r} is not allowed in the file; remove it"
    for match in _TOKEN.finditer(text):
        token, start = match.group(), match.start()
        if match.group() == "\ufeff" and start == 0:
            yield start, "the file begins with a byte-order mark; save the file as UTF-8 without this mark"
        elif match.lastgroup == "stray":
            reason = "is outside quotes, where the server reads only ASCII"
            yield start, f"{_called(token)} {reason}; remove it, or quote it"
        elif match.lastgroup == "plus":
            yield start, "'+' stands before a number; remove it"
        elif match.lastgroup == "number" and _NOT_C.match(token):
            yield start, f"{token!r} is not a number for the server; write decimal digits"
        elif match.lastgroup == "string":
            for escape in _ESCAPE.finditer(token):
                if escape["unknown"] is not None:
                    offset = start + escape.start()
                    yield offset, f"{escape.group()} is not an escape sequence; write two backslashes for a backslash"


def _called(character: str) -> str:
    if _FIRST_BYTE <= ord(character) <= _LAST_BYTE:
        return f"the byte 0x{ord(character) & 0xFF:02x}, which is not UTF-8,"
    name = unicodedata.name(character, "")
    return f"the character U+{ord(character):04X}" + (f" ({name})" if name else "")
