"""The user guide's table of roles: what the templates of the example app say, action by action."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from cdk_triton import (
    CodeBuildGpuBuilder,
    S3File,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World

TESTS = Path(__file__).parents[1]

Actions = dict[str, Counter[str]]
"""Role, as the letters of its path, to its actions; an action counts once for each row or statement that has it."""


def documented() -> Actions:
    """The rows of the page, by the roles in their heading."""
    page = (TESTS.parent / "docs" / "roles.md").read_text()
    found: Actions = defaultdict(Counter)
    for section in page.split("\n## Roles\n")[1].split("\n## ")[0].split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        for actions in re.findall(r"^\| (.*?) \|", text, re.MULTILINE):
            for path in re.findall(r"`(\w+/[^`]*)`", heading):
                found[re.sub(r"\W", "", path)].update(re.findall(r"`(\w+:\w+)`", actions))
    return dict(found)


def synthesised(resources: dict[str, Any]) -> Actions:
    """The same from a template, whose logical ids end in eight digits of a hash."""
    found: Actions = defaultdict(Counter)
    for resource in resources.values():
        if resource["Type"] in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"}:
            (role,) = resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                found[role["Ref"][:-8]].update([actions] if isinstance(actions, str) else actions)
    return dict(found)


def example(stack: str) -> dict[str, Any]:
    """The resources of a stack of the example app."""
    resources: dict[str, Any] = json.loads((TESTS / "snapshots" / f"{stack}.template.json").read_text())["Resources"]
    return resources


def store(world: World, **network: Any) -> dict[str, Any]:
    """The resources of a store with both builders, each of which builds something."""
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", **network) if network else None
    builders = [CodeBuildGpuBuilder(vpc=vpc), SageMakerProcessingBuilder(vpc=vpc)]
    made = TritonArtifactStore(stack, "Store", builders=builders, encryption_key=kms.Key(stack, "Key"))
    made._builder_for(made, world.platform, [S3File(bucket="models", key="bert.onnx", sha256="ab" * 32)])
    made._builder_for(made, replace(world.platform, instance_type="ml.g6.xlarge"), [])
    resources: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return resources


def endpoint(world: World) -> dict[str, Any]:
    """What a monitored endpoint adds to its model."""
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    TritonEndpoint(stack, "Endpoint", model=model).monitor()
    resources: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return {name: resource for name, resource in resources.items() if name.startswith("Endpoint")}


def without_endpoint(resources: dict[str, Any]) -> dict[str, Any]:
    return {name: resource for name, resource in resources.items() if not name.startswith("Endpoint")}


@pytest.mark.parametrize(
    ("construct", "resources_of"),
    [
        ("Model", lambda _: example("ImageClassification")),
        ("Fleet", lambda _: without_endpoint(example("TwoEnsembles"))),
        ("Store", store),
        ("Endpoint", endpoint),
    ],
)
def test_the_page_has_every_role_and_action_of_the_templates_and_no_other(
    construct: str, resources_of: Callable[[World], dict[str, Any]], world: World
) -> None:
    resources = resources_of(world)
    roles = {name[:-8] for name, resource in resources.items() if resource["Type"] == "AWS::IAM::Role"}
    rows = {role: actions for role, actions in documented().items() if role.startswith(construct)}

    # CDK makes one statement of several that allow the same: what counts for them is whether, not how often.
    assert {role: set(actions) for role, actions in rows.items()} == {
        role: set(actions) for role, actions in synthesised(resources).items()
    }
    assert construct == "Store" or rows == synthesised(resources)
    assert set(rows) == roles


def test_the_page_has_what_a_network_adds(world: World) -> None:
    page = (TESTS.parent / "docs" / "roles.md").read_text()
    (paragraph,) = (text for text in page.split("\n\n") if text.startswith("With `vpc=`"))
    network = {
        "vpc_id": "vpc-0123456789abcdef0",
        "availability_zones": ["eu-west-1a"],
        "private_subnet_ids": ["subnet-0123456789abcdef0"],
    }

    without, within = (synthesised(store(world, **given)) for given in ({}, network))

    added = {action for role in within for action in within[role] if action not in without[role]}
    assert set(re.findall(r"`(\w+:\w+)`", paragraph)) == added
