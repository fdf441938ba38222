"""The header of the data tables, and their form.

A table is a JSON object. Its first keys are the header, in the order of `REQUIRED`, `HASHES` and `OPTIONAL`; the data
follow. The hashes belong to generated tables only.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.generate._generator import ROOT, Files, GenerateError

BY_HAND = "by hand"
REQUIRED = ("about", "retrieved", "sources", "generator")
HASHES = ("input_sha256", "content_sha256")
OPTIONAL = ("notes", "fields")


def table_paths() -> list[str]:
    """Every data table of the library."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "constructs").rglob("data/*.json"))


def canonical(table: Mapping[str, Any]) -> bytes:
    """The one way to write a table."""
    return (json.dumps(table, indent=2, ensure_ascii=False) + "\n").encode()


def content_sha256(table: Mapping[str, Any]) -> str:
    """The hash of a table's data, without its header."""
    header = (*REQUIRED, *HASHES, *OPTIONAL)
    return hashlib.sha256(canonical({key: value for key, value in table.items() if key not in header})).hexdigest()


def checked(path: str) -> tuple[dict[str, Any], bytes]:
    """Read a table and check its header.

    Returns:
        The table, and its canonical form.

    Raises:
        GenerateError: the file is not JSON, or its header lacks something.
    """
    try:
        table: dict[str, Any] = json.loads((ROOT / path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise GenerateError(f"{path} is not JSON: {error}") from error
    if faults := list(header_faults(table)):
        raise GenerateError("\n".join(f"{path}: {fault}" for fault in faults))
    return table, canonical(table)


def existing(path: str) -> dict[str, Any]:
    """A table as it is, without a check; empty where it cannot be read."""
    try:
        table: dict[str, Any] = json.loads((ROOT / path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table


def checked_files(path: str) -> Files:
    """Return a generated table as it is, in its canonical form.

    Raises:
        GenerateError: as `checked`; or the data are not the ones that the generator wrote.
    """
    table, text = checked(path)
    if content_sha256(table) != table["content_sha256"]:
        raise GenerateError(
            f"{path} was changed by hand: its data do not have its `content_sha256`. Undo the change, or rewrite the "
            "table with `make generate SOURCES=<folder>`"
        )
    return {path: text}


def header_faults(table: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each thing that is wrong with a header."""
    is_generated = table.get("generator") != BY_HAND
    expected = [*REQUIRED, *(HASHES if is_generated else ()), *(key for key in OPTIONAL if key in table)]
    if list(table)[: len(expected)] != expected:
        yield f"its first keys are {list(table)[: len(expected)]}, but have to be {expected}"
        return
    if len(table["about"]) <= 50:
        yield (
            "`about` has at most 50 characters: write one sentence about what the table contains and where the data "
            "come from"
        )
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", table["retrieved"]) or not _is_past(table["retrieved"]):
        yield f"`retrieved` is {table['retrieved']!r}, but has to be today or a past day, such as 2026-11-20"
    if not table["sources"] or not all(isinstance(source, str) and len(source) > 20 for source in table["sources"]):
        yield "`sources` has to be a list of texts that lead to each source"
    if is_generated and not (ROOT / table["generator"]).is_file():
        yield f"`generator` is {table['generator']!r}, which is neither a file nor {BY_HAND!r}"
    for key in HASHES if is_generated else ():
        if not re.fullmatch(r"[0-9a-f]{64}", table[key]):
            yield f"`{key}` is not a SHA-256"


def _is_past(day: str) -> bool:
    try:
        return datetime.date.fromisoformat(day) <= datetime.datetime.now(datetime.UTC).date()
    except ValueError:
        return False
