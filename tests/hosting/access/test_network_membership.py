"""Subnets and security groups that are not of the VPC beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from cdk_triton import CodeBuildGpuBuilder, TritonArtifactStore, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def imported(stack: cdk.Stack, id: str, vpc_id: str) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        id,
        vpc_id=vpc_id,
        availability_zones=["eu-west-1a", "eu-west-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )


def model_in(world: World, stack: cdk.Stack, **network: Any) -> None:
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, **network)


def test_a_group_of_another_vpc_of_the_app_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    group = ec2.SecurityGroup(stack, "Group", vpc=ec2.Vpc(stack, "Other"))
    with messages.raises(ConfigurationError):
        model_in(world, stack, vpc=ec2.Vpc(stack, "Vpc"), security_groups=[group])


def test_a_subnet_of_another_vpc_of_the_app_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    subnets = ec2.SubnetSelection(subnets=ec2.Vpc(stack, "Other").private_subnets)
    with messages.raises(ConfigurationError):
        model_in(world, stack, vpc=ec2.Vpc(stack, "Vpc"), vpc_subnets=subnets)


def test_builds_and_functions_are_in_one_vpc_too(messages: Messages, stack: cdk.Stack) -> None:
    vpc, group = ec2.Vpc(stack, "Vpc"), ec2.SecurityGroup(stack, "Group", vpc=ec2.Vpc(stack, "Other"))
    builder = CodeBuildGpuBuilder(vpc=vpc, security_groups=[group])
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Builds", builders=[builder])
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Functions", vpc=vpc, security_groups=[group])


def test_a_group_of_another_imported_vpc_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    group = ec2.SecurityGroup(stack, "Group", vpc=imported(stack, "Other", "vpc-00000000000000001"))
    with messages.raises(ConfigurationError):
        model_in(world, stack, vpc=imported(stack, "Vpc", "vpc-00000000000000002"), security_groups=[group])


@pytest.mark.parametrize(
    "kind", ["made", "in another stack", "imported twice", "a parameter", "looked up", "a group by id"]
)
def test_what_may_be_of_the_vpc_is_not_rejected(world: World, stack: cdk.Stack, kind: str) -> None:
    id = "vpc-00000000000000001"
    match kind:
        case "made":
            vpc: ec2.IVpc = ec2.Vpc(stack, "Vpc")
            other = vpc
        case "in another stack":
            vpc = ec2.Vpc(cdk.Stack(cdk.Stage.of(stack), "Network"), "Vpc")
            other = vpc
        case "imported twice":
            vpc, other = imported(stack, "Vpc", id), imported(stack, "Again", id)
        case "a parameter":
            vpc, other = ec2.Vpc(stack, "Vpc"), imported(stack, "Again", cdk.CfnParameter(stack, "Id").value_as_string)
        case "looked up":  # `Vpc.from_lookup` gives this until the CLI has looked
            vpc, other = imported(stack, "Vpc", id), imported(stack, "Again", "vpc-12345")
        case _:
            vpc = other = ec2.Vpc(stack, "Vpc")
    group: ec2.ISecurityGroup = ec2.SecurityGroup(stack, "Group", vpc=other)
    if kind == "a group by id":
        group = ec2.SecurityGroup.from_security_group_id(stack, "Theirs", "sg-0123456789abcdef0")
    model_in(world, stack, vpc=vpc, security_groups=[group])
