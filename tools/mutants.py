"""Applies known faults to the handlers, and prints which tests notice each: `python -m tools.mutants [ID …]`.

The faults and the tests that notice them stand in `tests/handlers/mutants.toml`. Each one is applied to a copy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "handlers" / "mutants.toml"
COPIED = ("lambda", "tests/handlers", "tests/doubles", "tests/shared")


def mutants() -> list[dict[str, str]]:
    """The table's rows."""
    rows: list[dict[str, str]] = tomllib.loads(TABLE.read_text())["mutant"]
    return rows


def mutated(row: Mapping[str, str]) -> str:
    """The text of a handler's file with the fault in it.

    Raises:
        ValueError: what the row replaces does not stand there exactly once.
    """
    text = (ROOT / "lambda" / "artifacts" / row["file"]).read_text()
    if text.count(row["old"]) != 1:
        raise ValueError(f"{row['id']}: {row['file']} has {text.count(row['old'])} times {row['old']!r}")
    return text.replace(row["old"], row["new"])


def first_failure(row: Mapping[str, str]) -> str:
    """The first test that notices a fault; empty if none does."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for folder in COPIED:
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "tests/conftest.py", "tests/messages.golden"):
            if (ROOT / file).exists():
                shutil.copy(ROOT / file, copy / file)
        (copy / "lambda" / "artifacts" / row["file"]).write_text(mutated(row))
        tests = [f"tests/handlers/{test}" for test in row["by"].split()]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
        ran = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{row['id']}: pytest cannot run in the copy ({ran.returncode}): {ran.stdout}{ran.stderr}")
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    first = lines[0].partition("tests/handlers/")[2].partition(" - ")[0] if lines else ""
    if first and "::" not in first:
        raise SystemExit(f"{row['id']}: {first} cannot be imported from the copy, so it cannot notice the fault")
    return first


def main(wanted: list[str]) -> int:
    """Print a line per fault; the number of those that no test noticed although one should."""
    missed = 0
    for row in mutants():
        if wanted and row["id"] not in wanted:
            continue
        if "equivalent" in row:
            mutated(row)
            print(f"{row['id']:5} equivalent: {row['equivalent']}")
            continue
        failure = first_failure(row)
        missed += not failure
        print(f"{row['id']:5} {failure or 'SURVIVED'} ({row['what']})", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
