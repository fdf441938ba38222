"""`make check-rule CODE=...`: everything that judges one rule, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_an_unknown_code_is_one_sentence() -> None:
    done = check_rule("CT999")
    assert done.returncode == 2
    assert "there is no rule 'CT999'" in done.stderr
