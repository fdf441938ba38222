"""Subnets and security groups from a list that is one unresolved token: the usual export of a network team."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm

from cdk_triton import CodeBuildGpuBuilder, TritonArtifactStore, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def split(stack: cdk.Stack) -> Sequence[str]:
    return cdk.Fn.split(",", ssm.StringParameter.value_for_string_parameter(stack, "/network/subnets"))


def parameter(stack: cdk.Stack) -> Sequence[str]:
    return cdk.CfnParameter(stack, "Ids", type="List<AWS::EC2::Subnet::Id>").value_as_list


def vpc_with(stack: cdk.Stack, subnets: Sequence[str], zones: int = 1) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["eu-west-1a", "eu-west-1b"][:zones],
        private_subnet_ids=list(subnets),
    )


@pytest.mark.parametrize("ids", [split, parameter])
def test_a_list_of_subnets_that_is_a_token_is_rejected_for_that(
    ids: Callable[[cdk.Stack], Sequence[str]], world: World, stack: cdk.Stack, messages: Messages
) -> None:
    vpc = vpc_with(stack, ids(stack))
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(vpc=vpc)])


def test_a_list_of_security_groups_that_is_a_token_is_rejected_for_that(
    world: World, stack: cdk.Stack, messages: Messages
) -> None:
    vpc = vpc_with(stack, ["subnet-a", "subnet-b"], 2)
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", split(stack)[0])
    with messages.raises(ConfigurationError):
        TritonModel(
            stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc, security_groups=[group]
        )


def test_elements_of_such_a_list_are_fine(world: World, stack: cdk.Stack) -> None:
    ids = split(stack)
    vpc = vpc_with(stack, [cdk.Fn.select(0, ids), cdk.Fn.select(1, ids)], 2)
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)

    assert len(world.only(stack, "AWS::SageMaker::Model")["Properties"]["VpcConfig"]["Subnets"]) == 2
