"""The differences between the server's parser of `config.pbtxt` and Python's.

The server parses with protobuf's C++ library. Outside quotes it takes ASCII only; a no-break space from a web page is
the fault that people really make. It has fewer escapes, and reads every number as C does, even that of an enum or a
bool: `013` is 11. It rejects a minus before an unsigned zero, `inff` and `1ff`, an entry of a map with two keys, and
the number of an enum beyond 32 bits. In quotes and comments it takes any byte, UTF-8 or not, in quotes any byte as an
escape, and a space between a minus and its number.

Source: protobuf's text_format.cc, ConsumeFieldValue, ConsumeUnsignedInteger and ConsumeDouble; tokenizer.cc.
"""

from __future__ import annotations

import re
import unicodedata

from google.protobuf.descriptor import FieldDescriptor

from cdk_triton.triton.text_format_reader import TOKEN, Reader, TextFormatError, Token, Value, tokens

__all__ = ["as_python_reads_it"]

# What nearly no text has, and every difference needs. One search for all of it would be slower.
_UNUSUAL_CHARACTER = re.compile(r"[^\n\t\v\f\r -*,-\[\]-~]")  # not ASCII, a plus, or an escape
_UNUSUAL_ESCAPE = re.compile(r"\\(?:[2-7][0-7]{2}|[xuU?])")  # Python's parser may read it differently
_UNUSUAL_VALUES = (
    _UNUSUAL_ESCAPE,
    re.compile(r"-[\s#0]"),  # a minus before a space or a zero
    re.compile(
        r"""
        [0-9.iInN](?<![\w.'"].)         # the first character of a number
        (?: (?<=0)\w                    #   that is not decimal
          | (?<=[0-9])[0-9]{9}          #   that may have more than 32 bits
          | (?<=[0-9.])[\w.]*(?:_|[fF]{2}\b)   # that has an underscore, or ends in ff
          | (?:[nN][fF](?:[iI][nN][iI][tT][yY])?|[aA][nN])[fF]\b
        )
        """,
        re.VERBOSE,
    ),
    re.compile(r"""(?:key|value)\s*:?\s*(?:""|''|0)"""),  # the key or the value of an entry may come twice
)
_NOT_TEXT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF  # of those that are not UTF-8
_AS_LATIN_1 = {_FIRST_BYTE + number: 0x80 + number for number in range(_LAST_BYTE - _FIRST_BYTE + 1)}
# The names, numbers and signs of C in a token of Python's parser.
_IN_C = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*(?:(?<=[eE])[+-][0-9]+)?|\+")
_ESCAPE = re.compile(
    r"""
      \\(?:
        (?P<octal>[0-7]{1,3})
      | x(?P<hex>[0-9a-fA-F]{1,2})
      | (?: u(?P<short>[0-9a-fA-F]{4}) | U(?P<long>00[01][0-9a-fA-F]{5}) )
        (?: (?: (?<=u[dD][89abAB]..) | (?<=U0000[dD][89abAB]..) )\\u(?P<second>[dD][c-fC-F][0-9a-fA-F]{2}) )?
      | (?P<simple>[abfnrtv\\?'"])
      | .
      )
    """,
    re.VERBOSE,
)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_MOST_DIGITS = 4000  # that Python converts; no field takes as many
_NOT_FLOAT = re.compile(r"-?(?:inf(?:inity)?f|nanf|(?!0x).*ff)", re.IGNORECASE)
_UNSIGNED = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
_FLOAT = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


def as_python_reads_it(text: str) -> str:
    """The configuration, rewritten so that Python's parser reads it as the server does, at the same places.

    A byte that is not UTF-8 becomes the character that it is in Latin-1, a minus moves to its number, and the number of
    an enum or a bool becomes decimal.

    Raises:
        TextFormatError: the text contains something that Python's parser may take, but the server's does not.
    """
    has_unusual_values = any(unusual.search(text) for unusual in _UNUSUAL_VALUES)
    if has_unusual_values or _UNUSUAL_CHARACTER.search(text):
        _check_characters(text)
    if not text.isascii():
        text = text.translate(_AS_LATIN_1)
    return _rewritten(text) if has_unusual_values else text


def _rewritten(text: str) -> str:
    reader, pieces, end = Reader(), [], 0
    for token in tokens(text):
        field, written = reader.take(token), token.text
        if reader.is_lost:  # Python's parser complains of this token, or of one before it
            break
        if token.kind == "string":
            written = _unescaped(written)
        elif field is not None:
            written = _for_python(token, field)
        elif token.kind == "name":
            _check_key(token, reader.open[-1])
        if (written, token.minus) != (token.text, token.start):
            pieces += [text[end : token.minus], text[token.minus + 1 : token.start + 1], written]
            end = token.start + len(written)
    return "".join([*pieces, text[end:]])


def _check_characters(text: str) -> None:
    if match := _NOT_TEXT.search(text):
        raise TextFormatError(f"the character {match.group()!r} is not allowed in the file", "remove it", match.start())
    for match in TOKEN.finditer(text):
        start, end = match.span()
        if match.lastgroup in ("string", "unclosed"):
            for escape in _ESCAPE.finditer(text, start, end):
                if escape.lastgroup is None:
                    reason, fix = f"{escape.group()} is not an escape sequence", "write two backslashes for a backslash"
                    raise TextFormatError(reason, fix, escape.start())
        elif match.lastgroup == "mark" and not " " <= text[start] <= "~":
            if text[start] == "\ufeff" and start == 0:
                fix = "save the file as UTF-8 without this mark"
                raise TextFormatError("the file begins with a byte-order mark", fix, start)
            reason = f"{_called(text[start])} is outside quotes, where the server reads only ASCII"
            raise TextFormatError(reason, "remove it, or quote it", start)
        elif match.lastgroup in ("name", "number") and not match.group().isidentifier():
            _check_words(text, start, end)


def _check_words(text: str, start: int, end: int) -> None:
    for match in _IN_C.finditer(text, start, end):
        word = match.group()
        if word == "+":
            raise TextFormatError("'+' stands before a number", "remove it", match.start())
        if word[0].isdecimal() and (word[:2] in ("0b", "0B", "0o", "0O") or "_" in word):
            raise TextFormatError(f"{word!r} is not a number for the server", "write decimal digits", match.start())


def _called(character: str) -> str:
    if _FIRST_BYTE <= ord(character) <= _LAST_BYTE:
        return f"the byte 0x{ord(character) & 0xFF:02x}, which is not UTF-8,"
    name = unicodedata.name(character, "")
    return f"the character U+{ord(character):04X}" + (f" ({name})" if name else "")


def _check_key(token: Token, entry: Value) -> None:
    """Python's parser accepts a second key or value of an entry if the first is empty."""
    if len(entry.field.names) > 1 and entry.message is not None and entry.message.GetOptions().map_entry:
        reason = f"an entry of a map has '{token.text}' twice"
        raise TextFormatError(reason, "write a separate entry for each key", token.start)


def _for_python(token: Token, field: FieldDescriptor) -> str:
    """The number of an enum or a bool becomes decimal."""
    text, kind = token.text, field.cpp_type
    if kind in _FLOAT and _NOT_FLOAT.fullmatch(text):
        raise TextFormatError(f"{text!r} is not a number for the server", "remove the last 'f'", token.start)
    number = _c_integer(text)
    if number is None:
        return text
    if kind in _UNSIGNED and number == 0 and text[0] == "-":
        reason = f"{text!r} has a minus, but {field.name} takes no negative number"
        raise TextFormatError(reason, "write 0 or more", token.start)
    if kind == FieldDescriptor.CPPTYPE_ENUM and not -(2**31) <= number < 2**31:
        raise TextFormatError(f"Integer out of range ({text})", "write the name of the value", token.start)
    if kind == FieldDescriptor.CPPTYPE_ENUM or (kind == FieldDescriptor.CPPTYPE_BOOL and text[0] != "-"):
        return f"{number:>{len(text)}}"
    return text


def _c_integer(text: str) -> int | None:
    """None if C does not read an integer."""
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("-")[:_MOST_DIGITS]
    size = int(digits, 16 if digits[1:2] in ("x", "X") else 8 if digits[0] == "0" else 10)
    return -size if text[0] == "-" else size


def _unescaped(written: str) -> str:
    r"""Replace the server's escapes by characters, and fill up the string to its old length.

    The server's escapes are bytes: `\400` is `\000`, two halves of a surrogate pair are one character, and one half
    is three bytes.
    """
    if not _UNUSUAL_ESCAPE.search(written):
        return written
    content = _ESCAPE.sub(lambda match: _escape_bytes(match).decode("utf-8", errors="surrogateescape"), written[1:-1])
    read = content.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="surrogateescape")
    escaped = re.sub(rf"[\\{written[0]}]", r"\\\g<0>", read.translate(_AS_LATIN_1)).replace("\n", r"\n")
    escaped = re.sub("\0(?=[0-7])", r"\\000", escaped).replace("\0", r"\0")
    return f"{written[0]}{escaped}{written[0]}".ljust(len(written))


def _escape_bytes(escape: re.Match[str]) -> bytes:
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
    return _SIMPLE_ESCAPES.get(escape["simple"], escape["simple"]).encode()
