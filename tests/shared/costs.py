"""Marks tests by their cost, so that `make test-fast` leaves the expensive ones to `make test`.

Whole folders start a server or the CDK. Elsewhere a test that takes over half a second on an idle machine is marked
`slow` in its file, and a report at the end of a run names those that are not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

TESTS = Path(__file__).parents[1]
SLOW_SECONDS = 0.5
FOLDERS = {
    "cli/artifacts": ("server",),
    "cli/bench/test_stream.py": ("server",),
    "cli/invoke/test_stream.py": ("server",),
    "client/test_stream_on_triton.py": ("server",),
    "docs": ("server", "cdk"),
    "end_to_end": ("server", "cdk"),
    "examples": ("server", "cdk"),
    "hosting": ("cdk",),
    "integration": ("server",),
    "local_aws": ("server",),
    "model_assets": ("server",),
    "packaging/test_project.py": ("server", "cdk"),
    "permissions": ("server", "cdk"),
    "security": ("cdk",),
}
"""Folder or file below tests/ → what all its tests start."""
EXAMPLE_APP = "end_to_end/example_app"
"""The folder whose fixture `example_app` deploys an app, which takes a minute."""


@cache
def marks_of(path: Path) -> tuple[str, ...]:
    """What every test in a file or folder starts."""
    return next((marks for folder, marks in FOLDERS.items() if path.is_relative_to(TESTS / folder)), ())


def is_left_out(path: Path, expression: str) -> bool:
    """Whether a mark expression such as `not slow and not cdk`, or `long`, leaves out a whole file or folder."""
    if expression == "long":  # of 600 files, ten have such a test
        return path.suffix == ".py" and "mark.long" not in path.read_text(encoding="utf-8")
    return any(f"not {mark}" in expression.split(" and ") for mark in marks_of(path))


class UnmarkedSlowTests:
    """Collects the tests that took long although their marks do not show it; each phase of a test counts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a phase that took long."""
        if not {"server", "cdk", "slow", "long"} & set(report.keywords) and report.duration > SLOW_SECONDS:
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them, slowest first; a busy machine makes the list longer."""
        if self.seconds:
            terminalreporter.section(f"took over {SLOW_SECONDS} s and are not marked slow")
            for test, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
                terminalreporter.line(f"{seconds:6.1f} s  {test}")


def mark_by_folder(items: list[pytest.Item]) -> None:
    """Mark every test by the folder below tests/ that it is in."""
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)


def expensive_first(items: list[pytest.Item]) -> None:
    """Order files so that no worker is left alone with a long one at the end; the tests of a file keep their order.

    The test with the mark `longest` begins first.
    """
    items.sort(key=lambda item: (item.get_closest_marker("longest") is None, -len(marks_of(item.path))))


def files_of_one_app(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that gives whole files to workers, and one worker all that use the deployed example app."""
    scheduler = LoadFileScheduling(config, log)
    vars(scheduler)["_split_scope"] = _scope
    return scheduler


def _scope(test: str) -> str:
    """Return what a worker gets at once: the file of a test, or the folder whose fixture deploys the app."""
    return _scope_of_file(test.partition("::")[0])


@cache
def _scope_of_file(file: str) -> str:
    path = TESTS.parent / file
    shares = path.is_relative_to(TESTS / EXAMPLE_APP) and "example_app: " in path.read_text(encoding="utf-8")
    return EXAMPLE_APP if shares else file
