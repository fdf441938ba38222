"""`make check-rule CODE=...`: everything that judges one rule, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.check_rule import judges_of

from cdk_triton.checks import rule_of

ROOT = Path(__file__).parents[2]


def check_rule(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.check_rule", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_runs_the_examples_the_rows_the_module_and_the_generated_pages() -> None:
    done = check_rule("CT179")
    assert done.returncode == 0, done.stdout + done.stderr
    (passed, deselected) = re.findall(r"(\d+) (?:passed|deselected)", done.stdout)
    assert int(passed) < 100 < int(deselected)
    assert "files compared" in done.stdout


@pytest.mark.slow
def test_every_rule_has_tests() -> None:
    codes = re.findall(r"^CT\d+", (ROOT / "tests" / "checks" / "rules.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert codes
    assert not [code for code in codes if not judges_of(rule_of(code))]


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        pytest.param("CT621", ["tests/checks/serving/test_instance_types.py"], id="of its module"),
        pytest.param("CT198", ["tests/python_models/rules/test_model_calls.py"], id="of several modules"),
        pytest.param(
            "CT876", ["tests/dali_models/test_definitions.py", "tests/dali_models/test_models.py"], id="of a package"
        ),
    ],
)
def test_the_tests_of_a_rule(code: str, tests: list[str]) -> None:
    assert [each.as_posix() for each in judges_of(rule_of(code))] == tests


@pytest.mark.slow
def test_an_unknown_code_is_one_sentence() -> None:
    done = check_rule("CT999")
    assert done.returncode == 2
    assert "there is no rule 'CT999'" in done.stderr
