"""The user guide's table of roles: what the templates of the example app say, action by action."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]

Actions = dict[str, Counter[str]]
"""Role, as the letters of its path, to its actions; an action counts once for each row or statement that has it."""


def documented() -> Actions:
    """The page's rows; a row without a role goes on with the one before."""
    page = (TESTS.parent / "docs" / "security.md").read_text()
    found: Actions = defaultdict(Counter)
    roles: list[str] = []
    for row in re.findall(r"^\|(.*)\|$", page.split("## Roles")[1], re.MULTILINE):
        who, actions, _ = row.split("|")
        roles = [re.sub(r"\W", "", path) for path in re.findall(r"`(\w+/[^`]*)`", who)] or roles
        for role in roles:
            found[role].update(re.findall(r"`(\w+:\w+)`", actions))
    return dict(found)


def synthesised(resources: dict[str, Any]) -> Actions:
    """The same from a template, whose logical ids end in eight digits of a hash."""
    found: Actions = defaultdict(Counter)
    for resource in resources.values():
        if resource["Type"] == "AWS::IAM::Policy":
            (role,) = resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                found[role["Ref"][:-8]].update([actions] if isinstance(actions, str) else actions)
    return dict(found)


@pytest.mark.parametrize(
    ("construct", "stack"),
    [("Model", "ImageClassification"), ("Fleet", "TwoEnsembles"), ("Store", "TritonArtifacts")],
)
def test_the_page_has_every_role_and_action_of_the_templates_and_no_other(construct: str, stack: str) -> None:
    resources = json.loads((TESTS / "snapshots" / f"{stack}.template.json").read_text())["Resources"]
    roles = {name[:-8] for name, resource in resources.items() if resource["Type"] == "AWS::IAM::Role"}
    rows = {role: actions for role, actions in documented().items() if role.startswith(construct)}

    assert rows == synthesised(resources)
    assert set(rows) == roles
