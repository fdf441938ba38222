"""The terminal of the commands: its width, its colours, and how to fold a text into it.

If the output goes into a file or a pipe, there are neither colours nor folded lines, because the reader is a program,
or an editor that jumps to `path:line`.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata

import typer

__all__ = ["bold", "coloured", "columns_of", "cropped", "fold", "page_width", "width"]

_PAGE = 100  # also the width of a page that goes into a file


def width() -> int | None:
    """The columns of the terminal, or None where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def page_width() -> int:
    """The columns for a page of text."""
    return min(width() or _PAGE, _PAGE)


def fold(text: str, columns: int | None, *, indent: str = "", hanging: str = "") -> str:
    """A paragraph in lines of that many columns, or in one line; `hanging` is the indent from the second line on."""
    if columns is None:
        return indent + text
    return textwrap.fill(
        text,
        max(columns, 40),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns_of(text: str) -> int:
    """How many columns a text takes: some characters take two."""
    if text.isascii():
        return len(text)  # most are, and this is a hundred times as fast
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else not unicodedata.combining(each) for each in text)


def cropped(text: str, columns: int) -> str:
    """The text; a longer one is cut, and ends in `…`."""
    if columns_of(text) <= columns:
        return text.rstrip()
    taken, end = 0, 0
    while taken + columns_of(text[end]) < columns:
        taken += columns_of(text[end])
        end += 1
    return f"{text[:end]}…"


def bold(text: str) -> str:
    """The text, on a terminal in bold."""
    return _styled(text, None)


def coloured(text: str, severity: str) -> str:
    """The text, on a terminal in the colour of an error or a warning."""
    return _styled(text, typer.colors.RED if severity == "error" else typer.colors.YELLOW)


def _styled(text: str, colour: str | None) -> str:
    plain = width() is None or "NO_COLOR" in os.environ
    return text if plain else typer.style(text, fg=colour, bold=True)
