"""`Fn::GetStackOutput`: the output of another stack, as it is when a stack is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from tests.local_aws.cloudformation.test_stacks import parameter, template

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer


def producer(value: str) -> dict[str, Any]:
    return {**template(P=parameter(value)), "Outputs": {"Value": {"Value": {"Fn::GetAtt": ["P", "Value"]}}}}


def consumer(stack: str, output: str = "Value", **more: Any) -> dict[str, Any]:
    return template(C=parameter({"Fn::GetStackOutput": {"StackName": stack, "OutputName": output, **more}}))


def value_of(deployer: Deployer, name: str) -> str:
    (resource,) = deployer.client.describe_stack_resources(StackName=name)["StackResources"]
    found: str = deployer.aws.client("ssm").get_parameter(Name=resource["PhysicalResourceId"])["Parameter"]["Value"]
    return found


def test_the_output_is_read_anew_at_each_deployment_and_protected_by_nothing(deployer: Deployer) -> None:
    owner, user = deployer.new_name(), deployer.new_name()
    deployer.deploy(producer("old"), owner)
    assert deployer.deploy(consumer(owner, Region={"Ref": "AWS::Region"}), user) == "CREATE_COMPLETE"
    assert value_of(deployer, user) == "old"

    assert deployer.deploy(producer("new"), owner) == "UPDATE_COMPLETE"
    assert value_of(deployer, user) == "old"
    deployer.deploy(consumer(owner, Region={"Ref": "AWS::Region"}), user)
    assert value_of(deployer, user) == "new"
    assert deployer.delete(owner) == "DELETE_COMPLETE"
    assert value_of(deployer, user) == "new"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"stack": "nobody"}, "nobody"),
        ({"output": "Other"}, "Other"),
        ({"Region": "eu-west-1"}, "eu-west-1"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/reader"}, "RoleArn"),
        ({"Stack": "typo"}, "Stack"),
    ],
    ids=["no such stack", "no such output", "another region", "another role", "unknown parameter"],
)
def test_what_cannot_be_read_is_rejected(more: dict[str, str], reason: str, deployer: Deployer) -> None:
    owner = deployer.new_name()
    deployer.deploy(producer("x"), owner)
    more = {"stack": owner, **more}
    with pytest.raises(ClientError, match=reason):
        deployer.deploy(consumer(more.pop("stack"), **more), deployer.new_name())
