"""`cdk-triton validate --ignore` and `--strict`: which findings are shown, and which of them fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


BROKEN = """
backend: "python"
max_batch_siz: 8
"""


@pytest.fixture
def warned(repository: Path) -> Path:
    """A repository with one warning, CT112: a version directory with leading zeros."""
    (repository / "echo" / "01").mkdir()
    (repository / "echo" / "01" / "model.py").write_text("")
    return repository


@pytest.fixture
def broken(repository: Path) -> Path:
    """A repository with one error, CT101."""
    (repository / "echo" / "config.pbtxt").write_text(BROKEN)
    return repository


def codes(outcome: Any) -> list[str]:
    return [finding["code"] for finding in json.loads(outcome.out)["findings"]]


@pytest.mark.parametrize("prefix", ["CT101", "ct101", "CT1", "CT"])
def test_findings_are_hidden_by_code_or_prefix_and_counted(
    messages: Messages, run: Any, broken: Path, prefix: str
) -> None:
    outcome = run("validate", broken, "--ignore", prefix)
    assert outcome.status == 0
    messages.record("cdk-triton validate", "\n".join(line for line in outcome.out.splitlines() if "ignored" in line))
    assert codes(run("validate", broken, "--format", "json", "--ignore", prefix)) == []


def test_other_findings_are_shown(run: Any, broken: Path) -> None:
    outcome = run("validate", broken, "--format", "json", "--ignore", "CT2", "--ignore", "CT102")
    assert (outcome.status, codes(outcome)) == (1, ["CT101"])


def test_sarif_has_no_hidden_findings(run: Any, broken: Path) -> None:
    log = json.loads(run("validate", broken, "--format", "sarif", "--ignore", "CT101").out)
    assert log["runs"][0]["results"] == []


@pytest.mark.parametrize("prefix", ["CT1011", "SR", " "])
def test_a_prefix_of_no_code_is_rejected(messages: Messages, run: Any, broken: Path, prefix: str) -> None:
    outcome = run("validate", broken, "--ignore", prefix)
    assert (outcome.status, outcome.out) == (2, "")
    assert repr(prefix) in outcome.said
    messages.record("cdk-triton validate", outcome.said)


def test_warnings_fail_only_if_strict(run: Any, warned: Path) -> None:
    assert codes(run("validate", warned, "--format", "json")) == ["CT112"]
    assert run("validate", warned).status == 0
    assert run("validate", warned, "--strict").status == 1
    assert run("validate", warned, "--strict", "--ignore", "CT112").status == 0
