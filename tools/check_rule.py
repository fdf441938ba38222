"""Judges one rule: `python -m tools.check_rule CT101`, or `make check-rule CODE=CT101`.

It runs the documented examples of the rule, its rows in tests/checks/rows.toml, the tests of its module, and the tests
of how rules are written. They also compare the texts of the rule with tests/messages.golden. Then it compares the pages
of the rules and the list of rules with the rules.
"""

from __future__ import annotations

import argparse
import re
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

_CODES = re.compile(r"(CT\d+)(?: to (CT\d+))?")


def judges_of(rule: Rule) -> list[Path]:
    """The tests of a rule, relative to the checkout: those of its module, or others beside that name its code.

    The first line of tests names their codes, such as "The rules CT870 to CT878 about the file of a model".
    """
    own = _own_tests(rule)
    if (ROOT / own).is_file():
        return [own]
    directory = next(parent for parent in (ROOT / own).parents if parent.is_dir())
    others = sorted(directory.rglob("test_*.py"))
    return [each.relative_to(ROOT) for each in others if _names(each, rule.code)]


def _own_tests(rule: Rule) -> Path:
    _, *packages, module = rule.function.__module__.split(".")
    return Path("tests", *packages, f"test_{module}.py")


def _names(tests: Path, code: str) -> bool:
    first, *_ = tests.read_text(encoding="utf-8").splitlines() or [""]
    return any(low <= code <= (high or low) for low, high in _CODES.findall(first))


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
        rule = rule_of(code)
    except ConfigurationError as error:
        parser.error(str(error))
    tests = judges_of(rule)
    if not tests:
        parser.error(f"{code} has no tests: write {_own_tests(rule)}")
    status = pytest.main([f"--rootdir={ROOT}", "-q", *SHARED, *map(str, tests)], plugins=[_OnlyOne(code)])
    return status or run({name: each for name, each in generators().items() if name in GENERATED}, ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
