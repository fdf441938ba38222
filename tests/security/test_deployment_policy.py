"""The policy for CloudFormation's role: complete, free of wildcards, and small enough for IAM."""

from __future__ import annotations

import ast
import inspect
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import boto3
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template
from tests.hosting.conftest import ROOT
from tests.security.everything import IRELAND, add_everything

from cdk_triton import add_vpc_endpoints
from cdk_triton_local.cloudformation.resource_types import find

if TYPE_CHECKING:
    from tests.hosting.conftest import World

MAX_CHARACTERS = 6144
"""Of a managed policy, without whitespace ("IAM and AWS STS quotas")."""


def policy() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "docs" / "assets" / "deployment_policy.json").read_text())
    return document


def actions() -> set[str]:
    allowed = [statement["Action"] for statement in policy()["Statement"]]
    return {action for each in allowed for action in ([each] if isinstance(each, str) else each)}


def page() -> str:
    text = (ROOT / "docs" / "account.md").read_text(encoding="utf-8")
    return text.partition("\n## Permissions of a deployment\n")[2]


def test_the_page_lists_the_actions_of_the_policy() -> None:
    rows = "\n".join(line for line in page().splitlines() if line.startswith("|"))

    assert set(re.findall(r"`([a-z0-9-]+:[A-Z]\w+)`", rows)) == actions()


def test_the_page_has_every_type_of_resource(world: World) -> None:
    app = world.app()
    network = cdk.Stack(app, "Network", env=IRELAND)
    vpc = ec2.Vpc.from_vpc_attributes(
        network,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        vpc_cidr_block="10.0.0.0/16",
        availability_zones=["eu-west-1a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )
    add_vpc_endpoints(vpc, store_functions=True)
    types = {
        resource["Type"]
        for stack in [*add_everything(world, app), network]
        for resource in Template.from_stack(stack).to_json()["Resources"].values()
    }

    assert types <= set(re.findall(r"`(\w+::[\w:]+)`", page()))


def test_what_the_local_cloudformation_calls_for_these_types_is_allowed() -> None:
    for name in re.findall(r"`(AWS::[\w:]+)`", page()):
        for service, method in calls(type(find(name))) - {("s3", "list_buckets")}:  # S3's own doing
            action = f"{service.replace('stepfunctions', 'states')}:{operation(service, method)}"
            assert action in actions(), f"{name} needs {action}"


def calls(resource_type: type) -> set[tuple[str, str]]:
    """The calls of AWS in a class: `context.client(service).method(…)`, or by a variable that holds the client."""
    found = set()
    for function in ast.walk(ast.parse(inspect.getsource(resource_type))):
        if isinstance(function, ast.FunctionDef):
            text = ast.unparse(function)
            found |= set(re.findall(r"context\.client\('([\w-]+)'\)\.(\w+)\(", text))
            for variable, service in re.findall(r"(\w+) = context\.client\('([\w-]+)'\)\n", text):
                found |= {(service, method) for method in re.findall(rf"\b{variable}\.(\w+)\(", text)}
    return found


def operation(service: str, method: str) -> str:
    """CreateModel for `create_model`."""
    client = boto3.client(service, region_name="eu-west-1")  # type: ignore[call-overload]  # known names only
    name: str = client.meta.method_to_api_mapping[method]
    return name


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
