"""The page for contributors that adds a rule: its rule and the test of its rule work as they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.docs.blocks import of_kind

from cdk_triton.checks import registry, rules
from cdk_triton.triton.findings import Finding

RULE, TEST = (block.text for block in of_kind("docs/test_rule_page.py"))
SHOWN: dict[str, Any] = {"pytest": pytest}
exec(f"from __future__ import annotations\n{TEST}", SHOWN)
(PARAMETRIZED,) = SHOWN["test_a_long_queue_delay"].pytestmark


def places(findings: Iterable[Finding]) -> list[tuple[str, str, str | None]]:
    return [(finding.code, finding.path, finding.field) for finding in findings]


@pytest.mark.parametrize(*PARAMETRIZED.args)
def test_the_rule_finds_what_the_test_of_the_page_expects(
    write: Any, monkeypatch: pytest.MonkeyPatch, microseconds: int, expected: list[Any]
) -> None:
    rules()  # imports every other rule, before the registry is a copy
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    made = ModuleType("cdk_triton.checks.endpoint.queueing")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(RULE, vars(made))

    SHOWN["test_a_long_queue_delay"](SimpleNamespace(of=places), write, microseconds, expected)
