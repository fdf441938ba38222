"""Python's source without the syntax that is newer than the oldest Python which runs these checks.

A parser that does not support nested quotes in f-strings, `type X = …` or `def f[T]` (all of 3.12) rejects a sound
file. The faults that remain when these are taken out are faults in every Python.
"""

from __future__ import annotations

import ast
import re
from typing import Final

__all__ = ["NEWEST_KNOWN", "without_newer_syntax"]

NEWEST_KNOWN: Final = (3, 12)
"""The Python whose syntax is taken out: an older one may judge the rest. PEP 695 and PEP 701."""

_PREFIX = re.compile(r"(?<![^\W\d])(?:[rbuf]|rb|br|rf|fr)?(?=[\"'])", re.IGNORECASE)
_ALIAS = re.compile(r"(?:^|(?<=[;:]))([ \t]*)type[ \t]+(?=[^\W\d]\w*[ \t]*[\[=](?!=))", re.MULTILINE)
_ALIAS_MARK = "\N{SYMBOL FOR NULL} "  # in place of `type`, until the parameters are gone
_PARAMETERS = re.compile(r"(?:\b(?:def|class)|\N{SYMBOL FOR NULL})\s+[^\W\d]\w*\s*(?=\[)")
_CONVERSION = re.compile(r"!(?!=)\s*(\w*)\s*$")


def without_newer_syntax(text: str) -> str:
    """The source with empty strings for f-strings, without type parameters, and with `X = …` for `type X = …`.

    Lines keep their numbers.

    Raises:
        SyntaxError: an f-string is wrong in every Python.
    """
    fields: list[tuple[int, int]] = []
    plain, masked = _without_f_strings(text, fields)
    for first, last in fields:
        _check_field(text, first, last)
    return _without_types(plain, masked)


def _without_f_strings(text: str, fields: list[tuple[int, int]]) -> tuple[str, str]:
    """The source with empty strings for f-strings, and the same with blanks for what is in strings and comments."""
    pieces: list[str] = []
    masked: list[str] = []
    position = 0
    while position < len(text):
        prefix = _PREFIX.match(text, position)
        if prefix is not None:
            end = _string_end(text, position, fields)
        else:
            end = _line_end(text, position) if text[position] == "#" else position + 1
        piece = text[position:end]
        if prefix is not None and "f" in prefix[0].lower() and piece[-1] in "\"'":
            piece = '"""' + "\n" * piece.count("\n") + '"""'
        pieces.append(piece)
        masked.append(piece if prefix is None and piece[0] != "#" else re.sub(r"[^\n]", " ", piece))
        position = end
    return "".join(pieces), "".join(masked)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _string_end(text: str, position: int, fields: list[tuple[int, int]]) -> int:
    """The end of the string whose prefix begins at `position`, as Python 3.12 reads it; `fields` gets its fields."""
    match = _PREFIX.match(text, position)
    assert match is not None
    prefix, position = match[0].lower(), match.end()
    quote = text[position : position + 3]
    quote = quote if quote in ('"""', "'''") else quote[0]
    position += len(quote)
    while position < len(text):
        if text.startswith(quote, position):
            return position + len(quote)
        character = text[position]
        if character == "\\":
            named = "f" in prefix and "r" not in prefix and text.startswith("N{", position + 1)
            brace = "f" in prefix and text[position + 1 : position + 2] in ("{", "}")
            position = text.find("}", position) + 1 or len(text) if named else position + (1 if brace else 2)
        elif character == "\n" and len(quote) == 1:
            return position  # it does not end, and the parser says so
        elif character == "{" and "f" in prefix:
            doubled = text.startswith("{{", position)
            position = position + 2 if doubled else _field_end(text, position + 1, fields)
        elif character == "}" and "f" in prefix:
            if not text.startswith("}}", position):
                fields.append((position, position))
            position += 2
        else:
            position += 1
    return len(text)


def _field_end(text: str, first: int, fields: list[tuple[int, int]]) -> int:
    """The end of a replacement field, of which `first` is the first character after the brace."""
    depth, position, last = 0, first, None
    while position < len(text):
        character = text[position]
        in_format = last is not None
        if character == "}" and depth == 0:
            fields.append((first, position if last is None else last))
            return position + 1
        if in_format and character == "{":
            position = _field_end(text, position + 1, fields)
        elif not in_format and _PREFIX.match(text, position) is not None:
            position = _string_end(text, position, fields)
        elif not in_format and character == "#":
            position = _line_end(text, position)
        else:
            depth += 0 if in_format else (character in "([{") - (character in ")]}")
            if character == ":" and depth == 0 and last is None:
                last = position
            position += 1
    fields.append((first, first))
    return len(text)


def _check_field(text: str, first: int, last: int) -> None:
    """Parse the expression of a replacement field.

    Raises:
        SyntaxError: the text is not an expression.
    """
    expression, masked = _without_f_strings(text[first:last], [])
    conversion = _CONVERSION.search(masked)
    if conversion is not None:
        expression = expression[: conversion.start()]
    if (conversion is None or conversion[1] in ("r", "s", "a")) and expression.strip():
        try:
            ast.parse(f"({expression.rstrip().removesuffix('=')}\n)")
            return
        except SyntaxError:
            pass
    line = text.count("\n", 0, first) + 1
    raise SyntaxError(f"f-string: invalid expression {text[first:last]!r}", ("model.py", line, None, None))


def _without_types(text: str, masked: str) -> str:
    """The source without `type` before an alias and without type parameters."""
    for match in reversed(list(_ALIAS.finditer(masked))):
        text, masked = (_cut(each, match.end(1), match.end(), _ALIAS_MARK) for each in (text, masked))
    for match in reversed(list(_PARAMETERS.finditer(masked))):
        depth = 0
        for end in range(match.end(), len(masked)):
            depth += (masked[end] == "[") - (masked[end] == "]")
            if depth == 0:
                lines = "\\\n" * masked.count("\n", match.end(), end)
                text, masked = (_cut(each, match.end(), end + 1, lines) for each in (text, masked))
                break
    return text.replace(_ALIAS_MARK, "")


def _cut(text: str, first: int, last: int, instead: str) -> str:
    return text[:first] + instead + text[last:]
