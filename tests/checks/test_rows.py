"""Every check of the server, its start script and its loader has a rule, and a small repository that shows it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import rules
from cdk_triton.checks.documentation import Example

if TYPE_CHECKING:
    from sample_repositories import ExampleFindings

AREAS = {"start script", "archive loading", "model configuration", "ensemble", "repository"}
ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))["row"]


def called(row: dict[str, Any], code: str = "") -> str:
    """A row's name as the id of a test."""
    return " ".join(part for part in (row["area"], row["name"], code) if part).replace("::", ":")


FAULTS = [
    pytest.param(code, example, id=called(row, code)) for row in ROWS for code, example in row.get("faults", {}).items()
]
CLEAN = [pytest.param(row["clean"], id=called(row)) for row in ROWS if "clean" in row]


def test_a_row_has_codes_or_the_reason_why_there_are_none() -> None:
    known = {rule.code for rule in rules()}
    for row in ROWS:
        assert row["area"] in AREAS
        assert set(row.get("faults", {})) <= known, called(row)
        assert bool(row.get("faults")) is not bool(row.get("none")), called(row)
        assert set(row) <= {"area", "name", "faults", "none", "clean"}, called(row)


@pytest.mark.parametrize(("code", "example"), FAULTS)
def test_the_repository_has_the_fault_of_the_row(code: str, example: str, findings_of_example: ExampleFindings) -> None:
    findings = findings_of_example(Example.from_text(example))
    assert {finding.code for finding in findings} == {code}, findings


@pytest.mark.parametrize("example", CLEAN)
def test_what_a_row_allows_has_no_finding(example: str, findings_of_example: ExampleFindings) -> None:
    assert findings_of_example(Example.from_text(example)) == ()
