"""`cdk-triton explain`: the documentation of the rules on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import documented_rules

if TYPE_CHECKING:
    from golden_messages import Messages


def test_without_a_code_it_lists_every_rule(run: Any) -> None:
    outcome = run("explain")
    assert outcome.status == 0
    assert [line.split(maxsplit=2) for line in outcome.out.splitlines()] == [
        [rule.code, rule.severity.value, rule.title] for rule in documented_rules()
    ]


def test_a_rule_is_told_with_its_example(messages: Messages, run: Any) -> None:
    outcome = run("explain", "ct104")
    assert outcome.status == 0
    assert '\n    # model/config.pbtxt\n    name: "another"\n' in outcome.out
    assert '\n    # model/config.pbtxt\n    name: "model"\n' in outcome.out
    assert re.search(r" cdk_triton/checks/files/configuration_file\.py:\d+\n", outcome.out)
    assert re.search(r" https://github\.com/\S+\n$", outcome.out)
    messages.record("cdk-triton explain", re.sub(r"\.py:\d+", ".py:LINE", outcome.out).rstrip("\n"))


@pytest.mark.parametrize("rule", documented_rules(), ids=lambda rule: rule.code)
def test_every_rule_can_be_explained(run: Any, rule: Any) -> None:
    outcome = run("explain", rule.code)
    assert (outcome.status, outcome.err) == (0, "")
    assert rule.title in outcome.out
    assert rule.condition in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    "code",
    [
        "CT1104",
        "typo",
    ],
)
def test_an_unknown_code_ends_with_2(messages: Messages, run: Any, code: str) -> None:
    outcome = run("explain", code)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton explain", outcome.said)
