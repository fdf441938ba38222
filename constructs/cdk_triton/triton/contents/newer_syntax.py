"""Python's source without the syntax that is newer than the oldest Python which runs these checks.

A parser that does not know nested quotes in f-strings, `type X = …` or `def f[T]` (all of 3.12) rejects a sound file.
The faults that remain when these are taken out are faults in every Python.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["NEWEST_KNOWN", "without_newer_syntax"]

NEWEST_KNOWN: Final = (3, 12)
"""The Python whose syntax is taken out: an older one may judge the rest. PEP 695 and PEP 701."""

_PREFIX = re.compile(r"(?<![^\W\d])(?:[rbuf]|rb|br|rf|fr)?(?=[\"'])", re.IGNORECASE)
_ALIAS = re.compile(r"(?:^|(?<=[;:]))([ \t]*)type[ \t]+(?=[^\W\d]\w*[ \t]*[\[=](?!=))", re.MULTILINE)
_PARAMETERS = re.compile(r"(?:\b(?:def|class)|\N{SYMBOL FOR NULL})\s+[^\W\d]\w*\s*(?=\[)")
_ALIAS_MARK = "\N{SYMBOL FOR NULL} "  # one token in place of `type`, until its parameters are gone


def without_newer_syntax(text: str) -> str:
    """The source with empty strings for f-strings, without type parameters, and with `X = …` for `type X = …`.

    Lines keep their numbers.
    """
    pieces: list[str] = []
    masked: list[str] = []  # the same, with blanks for what is in strings and comments
    position = 0
    while position < len(text):
        end, string = position + 1, False
        if text[position] == "#":
            end = _line_end(text, position)
            string = True
        elif (match := _PREFIX.match(text, position)) is not None:
            end, string = _string_end(text, position), True
            if "f" in match[0].lower():
                pieces.append('"""' + "\n" * text.count("\n", position, end) + '"""')
                masked.append('"""' + "\n" * text.count("\n", position, end) + '"""')
                position = end
                continue
        piece = text[position:end]
        pieces.append(piece)
        masked.append(re.sub(r"[^\n]", " ", piece) if string else piece)
        position = end
    return _without_types("".join(pieces), "".join(masked))


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _string_end(text: str, position: int) -> int:
    """The end of the string whose prefix begins at `position`, as Python 3.12 reads it."""
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
            position = text.find("}", position) + 1 or len(text) if named else position + 2
        elif character == "\n" and len(quote) == 1:
            return position  # it does not end, and the parser says so
        elif character == "{" and "f" in prefix:
            position = position + 2 if text.startswith("{{", position) else _field_end(text, position + 1)
        else:
            position += 1
    return len(text)


def _field_end(text: str, position: int) -> int:
    """The end of a replacement field, of which `position` is the first character after the brace."""
    depth, in_format = 0, False
    while position < len(text):
        character = text[position]
        if in_format and character == "{":
            position = _field_end(text, position + 1)
            continue
        if character == "}" and depth == 0:
            return position + 1
        if not in_format and _PREFIX.match(text, position) is not None:
            position = _string_end(text, position)
            continue
        if not in_format and character == "#":
            position = _line_end(text, position)
            continue
        depth += 0 if in_format else (character in "([{") - (character in ")]}")
        in_format = in_format or (character == ":" and depth == 0)
        position += 1
    return len(text)


def _without_types(text: str, masked: str) -> str:
    """The source without `type` before an alias and without type parameters."""
    for match in reversed(list(_ALIAS.finditer(masked))):
        for_both = match.end(1), match.end()
        text, masked = (_cut(each, *for_both, _ALIAS_MARK) for each in (text, masked))
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
