"""Lists rows of the server's tables that no rule covers: `python tools/rule_rows.py [FACTS.md]`.

A row of tests/checks/rows.toml needs a code with a repository that shows it, or the reason why nothing is to be found.
With the page of facts that the table was made from, rows that the table lacks are listed as well. Exits 1 if it lists
any, and prints nothing otherwise.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdk_triton.checks import rules

TABLE = Path(__file__).parents[1] / "tests" / "checks" / "rows.toml"
SECTIONS = ("1.2", "2.2", "7.1", "7.2", "7.3")


def uncovered(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the rows of the table lack."""
    known = {rule.code for rule in rules()}
    for row in rows:
        name = f"{row['table']} {row['name']}"
        if not row.get("faults") and not row.get("none"):
            yield f"{name}: no code"
        for code, example in row.get("faults", {}).items():
            if code not in known:
                yield f"{name}: there is no rule {code}"
            if not example.strip():
                yield f"{name}: no repository shows {code}"


def missing(rows: Sequence[Mapping[str, Any]], facts: str) -> Iterator[str]:
    """The rows of a page of facts that the table lacks."""
    have = {(row["table"], row["name"]) for row in rows}
    for section in SECTIONS:
        for name in _first_cells(facts, section):
            if (section, name) not in have:
                yield f"{section} {name}: not in {TABLE.name}"


def _first_cells(facts: str, section: str) -> Iterator[str]:
    """The first column of the first table of a section, without its heading."""
    found = re.search(rf"^### {re.escape(section)} .*?(?=^#|\Z)", facts, re.MULTILINE | re.DOTALL)
    lines = [line for line in (found.group() if found else "").splitlines() if line.startswith("|")]
    if not lines:
        sys.exit(f"the page has no table {section}")
    for line in lines[2:]:
        yield line.split("|")[1].strip()


def main(arguments: Sequence[str]) -> int:
    """Print what there is, and return the exit status."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]
    lines = list(uncovered(rows))
    for page in arguments:
        lines += missing(rows, Path(page).read_text(encoding="utf-8"))
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
