"""Every row of the tables that the rules were made from has its code, and a small repository that shows it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import rules
from cdk_triton.checks.documentation import Example

if TYPE_CHECKING:
    from sample_repositories import ExampleFindings

ROOT = Path(__file__).parents[2]
ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))["row"]


def called(row: dict[str, Any], code: str = "") -> str:
    """A row's name as the id of a test."""
    return " ".join(part for part in (row["table"], row["name"], code) if part).replace("::", ":")


FAULTS = [
    pytest.param(code, example, id=called(row, code)) for row in ROWS for code, example in row.get("faults", {}).items()
]
CLEAN = [pytest.param(row["clean"], id=called(row)) for row in ROWS if "clean" in row]


@pytest.mark.parametrize("row", ROWS, ids=called)
def test_a_row_has_codes_or_the_reason_why_there_are_none(row: dict[str, Any]) -> None:
    known = {rule.code for rule in rules()}
    assert set(row.get("faults", {})) <= known
    assert bool(row.get("faults")) is not bool(row.get("none"))
    assert set(row) <= {"table", "name", "faults", "none", "clean"}


@pytest.mark.parametrize(("code", "example"), FAULTS)
def test_the_repository_has_the_fault_of_the_row(code: str, example: str, findings_of_example: ExampleFindings) -> None:
    findings = findings_of_example(Example.from_text(example))
    assert {finding.code for finding in findings} == {code}, findings


@pytest.mark.parametrize("example", CLEAN)
def test_what_a_row_allows_has_no_finding(example: str, findings_of_example: ExampleFindings) -> None:
    assert findings_of_example(Example.from_text(example)) == ()


def listed(*arguments: str | Path) -> tuple[int, str]:
    """What the tool says of the rows."""
    command = [sys.executable, ROOT / "tools" / "rule_rows.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_list_of_rows_without_a_code_is_empty() -> None:
    assert listed() == (0, "")


def test_a_row_that_the_table_lacks_is_listed(tmp_path: Path) -> None:
    page = "".join(
        f"### {table} a table\n\n| Rule | Error text |\n|---|---|\n"
        + "".join(f"| {row['name']} | words |\n" for row in ROWS if row["table"] == table)
        for table in ("1.2", "2.2", "7.1", "7.2", "7.3")
    )
    facts = tmp_path / "facts.md"
    facts.write_text(page)
    assert listed(facts) == (0, "")
    facts.write_text(f"{page}| a rule of tomorrow | words |\n")
    assert listed(facts) == (1, "7.3 a rule of tomorrow: not in rows.toml\n")
