"""Builders in a VPC: their interfaces, subnets and security groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from cdk_triton import CodeBuildGpuBuilder, SageMakerProcessingBuilder, TritonArtifactStore

if TYPE_CHECKING:
    from tests.hosting.conftest import World

INTERFACES = "arn:aws:ec2:eu-west-1:111122223333:network-interface/*"


@pytest.fixture(name="subnet")
def _subnet(ireland: cdk.Stack) -> str:
    vpc = ec2.Vpc.from_vpc_attributes(
        ireland,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["eu-west-1a", "eu-west-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
    there: Any = {"vpc": vpc, "vpc_subnets": ec2.SubnetSelection(availability_zones=["eu-west-1a"])}
    given = ec2.SecurityGroup.from_security_group_id(ireland, "Given", "sg-0123456789abcdef0")
    TritonArtifactStore(
        ireland,
        "Store",
        builders=[CodeBuildGpuBuilder(**there, security_groups=[given]), SageMakerProcessingBuilder(**there)],
        access_logs_bucket=s3.Bucket.from_bucket_name(ireland, "AccessLogs", "access-logs"),
        encryption_key=kms.Key.from_key_arn(ireland, "Key", "arn:aws:kms:eu-west-1:111122223333:key/abc"),
    )
    return "arn:aws:ec2:eu-west-1:111122223333:subnet/subnet-0123456789abcdef0"


def test_a_project_is_put_there(world: World, ireland: cdk.Stack, subnet: str) -> None:
    project = world.only(ireland, "AWS::CodeBuild::Project")

    assert project["Properties"]["VpcConfig"] == {
        "VpcId": "vpc-0123456789abcdef0",
        "Subnets": ["subnet-0123456789abcdef0"],
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
    }
    assert any(name.startswith("StoreCodeBuildRolePermissions") for name in project["DependsOn"])


def test_a_job_gets_a_security_group_that_lets_nothing_in(
    world: World, ireland: cdk.Stack, flattened: Callable[[Any], str], subnet: str
) -> None:
    (name,) = world.resources(ireland, "AWS::EC2::SecurityGroup")

    assert "SecurityGroupIngress" not in world.only(ireland, "AWS::EC2::SecurityGroup")["Properties"]
    functions = json.dumps(world.resources(ireland, "AWS::Lambda::Function"))
    assert r"\"subnets\": [\"subnet-0123456789abcdef0\"], \"security_groups\": [\"" in functions
    assert f'{{"Fn::GetAtt": ["{name}", "GroupId"]}}' in functions


def test_interfaces_are_made_in_its_subnets_only(
    ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]], subnet: str
) -> None:
    within = f'{{"ArnEquals": {{"ec2:Subnet": ["{subnet}"]}}}}'
    codebuild_only = f'{within[:-1]}, "StringEquals": {{"ec2:AuthorizedService": "codebuild.amazonaws.com"}}}}'
    describing = {
        f"ec2:Describe{what} on *" for what in ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")
    }

    assert {line for line in grants(ireland, "StoreCodeBuildRole") if line.startswith("ec2:")} == {
        *describing,
        f"ec2:CreateNetworkInterface on {INTERFACES}",
        f"ec2:CreateNetworkInterface on {subnet}",
        "ec2:CreateNetworkInterface on arn:aws:ec2:eu-west-1:111122223333:security-group/sg-0123456789abcdef0",
        f"ec2:DeleteNetworkInterface on {INTERFACES} {within}",
        f"ec2:CreateNetworkInterfacePermission on {INTERFACES} {codebuild_only}",
    }


def test_the_role_of_a_job_names_no_resource_of_the_network(
    ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]], subnet: str
) -> None:
    """SageMaker's guide: with conditions or resource filters, the validation of the job fails."""
    actions = ("Create", "Delete", "Describe")
    assert {line for line in grants(ireland, "StoreProcessingRole") if line.startswith("ec2:")} == {
        *(f"ec2:{action}NetworkInterface{'s' * (action == 'Describe')} on *" for action in actions),
        *(f"ec2:{action}NetworkInterfacePermission on *" for action in actions[:2]),
        *(f"ec2:Describe{what} on *" for what in ("DhcpOptions", "SecurityGroups", "Subnets", "Vpcs")),
    }


def test_cdk_nag_finds_nothing_unexplained(ireland: cdk.Stack, subnet: str) -> None:
    report = AwsSolutionsChecks().validate_scope(ireland)

    assert [violation.rule_name for violation in report.violations or []] == []
