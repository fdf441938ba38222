"""The policy for CloudFormation's role: complete, free of wildcards, and small enough for IAM."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aws_cdk.assertions import Template
from tests.hosting.conftest import ROOT
from tests.security.everything import add_everything

if TYPE_CHECKING:
    from tests.hosting.conftest import World

MAX_CHARACTERS = 6144
"""Of a managed policy, without whitespace ("IAM and AWS STS quotas")."""


def policy() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "docs" / "deployment_policy.json").read_text())
    return document


def actions() -> set[str]:
    allowed = [statement["Action"] for statement in policy()["Statement"]]
    return {action for each in allowed for action in ([each] if isinstance(each, str) else each)}


def section() -> str:
    page = (ROOT / "docs" / "security.md").read_text()
    return page.partition("## What a deployment needs\n")[2].partition("\n## ")[0]


def test_the_page_lists_the_actions_of_the_policy() -> None:
    rows = "\n".join(line for line in section().splitlines() if line.startswith("|"))

    assert set(re.findall(r"`([a-z0-9-]+:[A-Z]\w+)`", rows)) == actions()


def test_the_page_has_every_type_of_resource(world: World) -> None:
    types = {
        resource["Type"]
        for stack in add_everything(world, world.app())
        for resource in Template.from_stack(stack).to_json()["Resources"].values()
    }

    assert types <= set(re.findall(r"`(\w+::[\w:]+)`", section()))


def test_every_action_exists_and_is_written_out() -> None:
    known = json.loads(files("cfnlint.data.AdditionalSpecs").joinpath("Policies.json").read_text())

    for action in actions():
        service, _, name = action.partition(":")
        assert name.lower() in known[service]["Actions"], action


def test_roles_are_passed_to_known_services_only() -> None:
    conditions = {statement["Sid"]: statement.get("Condition") for statement in policy()["Statement"]}

    assert conditions["Roles"]["StringEquals"]["iam:PassedToService"] == [
        f"{service}.amazonaws.com" for service in ("codebuild", "lambda", "sagemaker", "scheduler", "states")
    ]
    assert conditions["ServiceLinkedRole"]["StringEquals"]["iam:AWSServiceName"] == (
        "sagemaker.application-autoscaling.amazonaws.com"
    )


def test_it_is_small_enough_for_a_managed_policy() -> None:
    assert len(json.dumps(policy(), separators=(",", ":"))) <= MAX_CHARACTERS
