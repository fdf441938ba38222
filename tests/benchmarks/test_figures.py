"""What `make bench` promises: a line for each figure, and an exit status that says whether all of them hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """The runner beside benchmarks that take no time."""
    programs = {
        "fast": "report('fast.ratio', 23.456789, 'times', at_least=15); progress('fast: done')",
        "small": "report('small.memory', 100, 'MB', at_most=100)",
        "slow": "report('slow.first', 1.0, 's', at_most=2)\nreport('slow.second', 2.00001, 's', at_most=2)",
        "silent": "",
        "publish": "import sys\nreport('publish.options', len(sys.argv) - 1, 'options', at_most=1)",
        "broken": "report('broken.first', 1, 's', at_most=2)\nraise SystemExit('the disk is full')",
    }
    for name in ("run.py", "_figures.py"):
        shutil.copy(BENCHMARKS / name, tmp_path)
    for name, program in programs.items():
        (tmp_path / f"{name}.py").write_text(f"from _figures import progress, report\n{program}\n", encoding="utf-8")
    return tmp_path


def run(benchmarks: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, benchmarks / "run.py", *names], check=False, capture_output=True, text=True, timeout=60
    )


def test_every_figure_is_one_line_of_json(benchmarks: Path) -> None:
    ran = run(benchmarks, "fast", "small")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [
        {"figure": "fast.ratio", "value": 23.46, "unit": "times", "required": ">= 15", "holds": True},
        {"figure": "small.memory", "value": 100, "unit": "MB", "required": "<= 100", "holds": True},
    ]
    assert ran.stderr == "fast: done\n"
    assert ran.returncode == 0


def test_a_figure_that_does_not_hold_fails_the_run_and_lets_the_others_speak(
    messages: Messages, benchmarks: Path
) -> None:
    ran = run(benchmarks, "slow", "small")
    figures = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(figure["figure"], figure["holds"]) for figure in figures] == [
        ("slow.first", True),
        ("slow.second", False),  # the unrounded value is compared
        ("small.memory", True),
    ]
    messages.record("make bench", ran.stderr.rstrip("\n"))
    assert ran.returncode == 1


@pytest.mark.parametrize(
    ("name", "words"), [("silent", ""), ("broken", "the disk is full\n")], ids=["silent", "broken"]
)
def test_a_benchmark_without_all_its_figures_does_not_hold(
    messages: Messages, benchmarks: Path, name: str, words: str
) -> None:
    ran = run(benchmarks, name)
    assert ran.stderr.startswith(words)
    messages.record("make bench", ran.stderr.rstrip("\n"))
    assert ran.returncode == 1


def test_without_a_name_all_run(messages: Messages, benchmarks: Path) -> None:
    ran = run(benchmarks)
    messages.record("make bench", ran.stderr.splitlines()[-1])
    assert ran.stdout.count("\n") == 6


def test_only_benchmarks_that_have_a_long_run_get_the_option(benchmarks: Path) -> None:
    assert [json.loads(line)["value"] for line in run(benchmarks, "publish").stdout.splitlines()] == [0]
    ran = run(benchmarks, "--long", "small", "publish")
    assert [json.loads(line)["value"] for line in ran.stdout.splitlines()] == [100, 1]


def test_an_unknown_name_is_rejected_with_those_that_exist(messages: Messages, benchmarks: Path) -> None:
    ran = run(benchmarks, "speed")
    messages.record("make bench", ran.stderr.rstrip("\n"))
    assert ran.returncode == 2


@pytest.mark.slow
def test_an_import_loads_no_cdk_and_starts_no_process() -> None:
    """Of the real figures, those that do not depend on how busy the machine is."""
    figures = [json.loads(line) for line in run(BENCHMARKS, "imports").stdout.splitlines()]
    counts = {figure["figure"]: figure["holds"] for figure in figures if figure["unit"] != "s"}
    assert len(counts) == 4
    assert all(counts.values()), counts
