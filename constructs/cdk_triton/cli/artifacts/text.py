"""The commands' answers for a person: tables, a manifest, sizes and times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cdk_triton.cli.terminal import bold, columns_of, fold, page_width
from cdk_triton.triton.findings import printable

__all__ = ["SHORT", "counted", "size_of", "table", "time_of", "tree"]

SHORT = 12
"""Digits of a key that a person reads; two of a million artifacts begin alike with a chance of 1 in 500."""

_GAP = "  "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as lines with aligned columns; the last column is not padded."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(columns_of, column)) for column in zip(headings, *cells, strict=True)]
    yield bold(_row(headings, widths))
    for row in cells:
        yield _row(row, widths)


def tree(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A JSON object as indented lines; a list of plain values is one line, and a command is quoted as in a shell."""
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{bold(printable(name))}:"
            yield from tree(value, f"{indent}  ")
        elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
            yield f"{indent}{bold(printable(name))}:"
            for each in value:
                yield from _item(each, f"{indent}  ")
        else:
            hanging = f"{indent}    "
            yield fold(f"{printable(name)}: {_plain(value)}", page_width(), indent=indent, hanging=hanging)


def _item(value: Any, indent: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{indent}- {_plain(value)}"
        return
    lines = tree(value, f"{indent}  ")
    for number, line in enumerate(lines):
        yield f"{indent}- {line.lstrip()}" if number == 0 else line


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return " ".join(_plain(each) for each in value) if value else "none"
    return "none" if value is None or value == {} else json.dumps(value)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - columns_of(cell)) for cell, width in zip(cells, widths, strict=True)]
    return _GAP.join(padded).rstrip()


def size_of(count: int) -> str:
    """Bytes in the unit that leaves up to four digits."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def time_of(moment: datetime) -> str:
    """A time in UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def counted(count: int, word: str) -> str:
    """`1 artifact`, `2 artifacts`."""
    return f"{count:,} {word}{'s' * (count != 1)}"
