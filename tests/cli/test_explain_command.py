"""`cdk-triton explain`: the documentation of the rules on a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import documented_rules
from cdk_triton.hosting.naming.construct_codes import CONSTRUCT_CODES
from cdk_triton.triton import Severity

if TYPE_CHECKING:
    from golden_messages import Messages

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs"
HOSTING = ROOT / "constructs" / "cdk_triton" / "hosting"


def test_without_a_code_it_lists_every_rule_and_then_the_codes_of_the_constructs(run: Any) -> None:
    outcome = run("explain")
    assert outcome.status == 0
    lines, count = outcome.out.splitlines(), len(documented_rules())
    assert [line.split(maxsplit=2) for line in lines[:count]] == [
        [rule.code, rule.severity.value, rule.title] for rule in documented_rules()
    ]
    assert lines[count:] == [f"{each.code}  {each.severity:<7}  {each.title}" for each in CONSTRUCT_CODES]


def test_a_rule_is_told_with_its_example(messages: Messages, run: Any) -> None:
    outcome = run("explain", "ct104")
    assert outcome.status == 0
    assert '\n    # model/config.pbtxt\n    name: "another"\n' in outcome.out
    assert '\n    # model/config.pbtxt\n    name: "model"\n' in outcome.out
    assert re.search(r" cdk_triton/checks/files/configuration_file\.py:\d+\n", outcome.out)
    assert re.search(r" https://github\.com/\S+\n$", outcome.out)
    messages.record("cdk-triton explain", re.sub(r"\.py:\d+", ".py:LINE", outcome.out).rstrip("\n"))


def test_every_rule_can_be_explained(run: Any) -> None:
    for rule in documented_rules():
        outcome = run("explain", rule.code)
        assert (outcome.status, outcome.err) == (0, ""), rule.code
        assert rule.title in outcome.out
        assert rule.condition in " ".join(outcome.out.split())


@pytest.mark.parametrize("code", ["Annotation::CT104", "annotation::cdk-triton:nowayout", "cdk-triton:NoWayOut"])
def test_a_code_is_explained_as_the_cdk_prints_it(run: Any, code: str) -> None:
    outcome = run("explain", code)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.lower().startswith(code.lower().removeprefix("annotation::"))


def test_a_warning_of_a_construct_is_explained_by_its_bare_name(run: Any) -> None:
    assert run("explain", "NoWayOut").out.startswith("cdk-triton:NoWayOut  ")


def test_every_code_of_the_constructs_can_be_explained(run: Any) -> None:
    files = [*HOSTING.rglob("*.py"), HOSTING.parent / "artifacts" / "prepare.py"]  # whose findings they report
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    printed = set(re.findall(r'= "(cdk-triton:[A-Z]\w+)"', source))
    titles = {page.read_text(encoding="utf-8").partition("\n")[0] for page in GUIDE.glob("*.md")}
    assert printed == {each.code for each in CONSTRUCT_CODES}
    for each in CONSTRUCT_CODES:
        outcome = run("explain", each.code)
        assert outcome.out.startswith(f"{each.code}  {each.severity}  {each.title}\n")
        kind = "info" if each.severity == "info" else "warning"
        is_acknowledged = f'acknowledge_{kind}("{each.code}", ' in outcome.out
        assert is_acknowledged == (each.severity is not Severity.ERROR)
        assert f"# {each.page}" in titles


@pytest.mark.parametrize(
    "code",
    [
        "cdk-triton:Nothing",
        "CT1104",
        "typo",
    ],
)
def test_an_unknown_code_ends_with_2(messages: Messages, run: Any, code: str) -> None:
    outcome = run("explain", code)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton explain", outcome.said)
