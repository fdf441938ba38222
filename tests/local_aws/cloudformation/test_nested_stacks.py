"""Nested stacks: a stack of their own, which lives and dies with its parent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.local_aws.cloudformation.test_stacks import BROKEN, parameter, template

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

Url = Callable[[dict[str, Any]], str]


@pytest.fixture(name="url")
def _url(deployer: Deployer) -> Url:
    """Puts a template into S3, as the CDK CLI does with that of a nested stack."""
    s3 = deployer.aws.client("s3")
    bucket = f"{deployer.new_name()}-templates"
    s3.create_bucket(Bucket=bucket)
    numbers = iter(range(100))

    def put(body: dict[str, Any]) -> str:
        key = f"{next(numbers)}.json"
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(body).encode())
        return f"https://s3.us-east-1.amazonaws.com/{bucket}/{key}"

    return put


def inner(value: Any = None, **resources: Any) -> dict[str, Any]:
    """A template that keeps its parameter `Text` in Systems Manager, and tells where."""
    return {
        "Parameters": {"Text": {"Type": "String"}},
        **template(Kept=parameter({"Ref": "Text"} if value is None else value), **resources),
        "Outputs": {"Name": {"Value": {"Ref": "Kept"}}, "Text": {"Value": {"Ref": "Text"}}},
    }


def nested(url: str, text: Any = "hello", **more: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {"TemplateURL": url, "Parameters": {"Text": text}},
        **more,
    }


def kept(deployer: Deployer, name: str) -> str:
    found: str = deployer.aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    return found


def exists(deployer: Deployer, name: str) -> bool:
    return bool(deployer.aws.client("ssm").get_parameters(Names=[name])["Parameters"])


def outer(url: str, text: Any = "hello", **resources: Any) -> dict[str, Any]:
    body = template(
        First=parameter("first"),
        Nested=nested(url, text, DependsOn=["First"]),
        Told=parameter({"Fn::GetAtt": ["Nested", "Outputs.Text"]}),
        **resources,
    )
    return {
        **body,
        "Outputs": {"Name": {"Value": {"Fn::GetAtt": ["Nested", "Outputs.Name"]}}, "Told": {"Value": {"Ref": "Told"}}},
    }


def outputs(deployer: Deployer, name: str) -> dict[str, str]:
    return {each["OutputKey"]: each["OutputValue"] for each in deployer.describe(name)["Outputs"]}


def test_a_nested_stack_is_created_updated_and_deleted_with_its_parent(deployer: Deployer, url: Url) -> None:
    name, place = deployer.new_name(), url(inner())
    tags = [{"Key": "team", "Value": "search"}]
    assert deployer.deploy(outer(place), name, Tags=tags) == "CREATE_COMPLETE"
    told = outputs(deployer, name)
    (child,) = [
        each for each in deployer.client.describe_stacks()["Stacks"] if each["StackName"].startswith(f"{name}-Nested-")
    ]
    assert kept(deployer, told["Name"]) == kept(deployer, told["Told"]) == "hello"
    assert child["Tags"] == tags

    assert deployer.deploy(outer(place, "changed"), name, Tags=tags) == "UPDATE_COMPLETE"
    assert outputs(deployer, name) == told
    assert kept(deployer, told["Name"]) == kept(deployer, told["Told"]) == "changed"

    assert deployer.deploy(outer(url(inner("of another template")), "changed"), name, Tags=tags) == "UPDATE_COMPLETE"
    assert kept(deployer, told["Name"]) == "of another template"

    assert deployer.delete(name) == "DELETE_COMPLETE"
    assert deployer.describe(child["StackId"])["StackStatus"] == "DELETE_COMPLETE"
    assert not exists(deployer, told["Name"])


def test_a_creation_that_fails_inside_fails_outside_and_leaves_nothing(deployer: Deployer, url: Url) -> None:
    name = deployer.new_name()
    broken = url(inner(Broken={**BROKEN, "DependsOn": ["Kept"]}))
    assert deployer.deploy(outer(broken), name) == "ROLLBACK_COMPLETE"

    (failure,) = [each for each in deployer.raw_events(name) if each["ResourceStatus"] == "CREATE_FAILED"]
    assert failure["LogicalResourceId"] == "Nested"
    assert "was not successfully created" in failure["ResourceStatusReason"]
    assert "[Broken]" in failure["ResourceStatusReason"]
    left = [each["StackName"] for each in deployer.client.describe_stacks()["Stacks"]]
    assert not [each for each in left if each.startswith(f"{name}-")]


def test_an_update_that_fails_inside_rolls_both_back(deployer: Deployer, url: Url) -> None:
    name, place = deployer.new_name(), url(inner())
    deployer.deploy(outer(place), name)
    told = outputs(deployer, name)

    broken = url(inner("other", Broken={**BROKEN, "DependsOn": ["Kept"]}))
    assert deployer.deploy(outer(broken, "changed"), name) == "UPDATE_ROLLBACK_COMPLETE"
    assert kept(deployer, told["Name"]) == kept(deployer, told["Told"]) == "hello"
    assert deployer.deploy(outer(place, "again"), name) == "UPDATE_COMPLETE"
    assert kept(deployer, told["Name"]) == kept(deployer, told["Told"]) == "again"


def test_an_update_that_fails_outside_takes_the_nested_stack_back(deployer: Deployer, url: Url) -> None:
    name, place = deployer.new_name(), url(inner())
    deployer.deploy(outer(place), name)
    told = outputs(deployer, name)

    after = outer(url(inner("other")), "changed", Broken={**BROKEN, "DependsOn": ["Nested"]})
    assert deployer.deploy(after, name) == "UPDATE_ROLLBACK_COMPLETE"
    assert kept(deployer, told["Name"]) == kept(deployer, told["Told"]) == "hello"


def test_a_change_set_does_not_take_old_outputs_for_new_ones(deployer: Deployer, url: Url) -> None:
    name, place = deployer.new_name(), url(inner())
    deployer.deploy(outer(place), name)

    made = deployer.client.create_change_set(
        StackName=name, ChangeSetName="next", TemplateBody=json.dumps(outer(place, "changed"))
    )
    changes = deployer.client.describe_change_set(ChangeSetName=made["Id"])["Changes"]
    assert {each["ResourceChange"]["LogicalResourceId"] for each in changes} == {"Nested", "Told"}
