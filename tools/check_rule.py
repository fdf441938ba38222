"""Judges one rule: `python -m tools.check_rule CT101`, or `make check-rule CODE=CT101`.

It runs the documented examples of the rule, its rows in tests/checks/rows.toml, the tests of its module, and the tests
of how rules are written. They also compare the texts of the rule with tests/messages.golden. Then it compares the pages
of the rules and the list of rules with the rules.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tools.generate._generator import ROOT, generators
from tools.generate._writing import run

from cdk_triton.checks import Rule, rule_of
from cdk_triton.errors import ConfigurationError

SHARED = tuple(f"tests/checks/test_{name}.py" for name in ("rule_examples", "rows", "run"))
"""The tests of all rules, of which only those with the rule's code in their ids run."""
GENERATED = ("rules_page", "rules_list")


def tests_of(rule: Rule) -> Path:
    """The tests of a rule's module, relative to the checkout."""
    _, *packages, module = rule.function.__module__.split(".")
    return Path("tests", *packages, f"test_{module}.py")


class _OnlyOne:
    """Leaves of the tests of all rules those of one rule."""

    def __init__(self, code: str) -> None:
        self._code = code

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        others = [item for item in items if item.nodeid.startswith(SHARED) and self._code not in item.nodeid]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 if everything agrees."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_rule", description="Judges one rule.")
    parser.add_argument("code", help="the code of a rule of this library, such as CT101")
    code = parser.parse_args(arguments).code
    try:
        tests = tests_of(rule_of(code))
    except ConfigurationError as error:
        parser.error(str(error))
    if not (ROOT / tests).is_file():
        parser.error(f"{code} has no tests: write {tests}")
    status = pytest.main([f"--rootdir={ROOT}", "-q", *SHARED, str(tests)], plugins=[_OnlyOne(code)])
    return status or run({name: each for name, each in generators().items() if name in GENERATED}, ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
