"""The VPC endpoints that `add_vpc_endpoints` adds to a VPC, and who may use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks
from tests.hosting.access.vpcs import VPC, app, isolated, stack, vpc

from cdk_triton import add_vpc_endpoints
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

__all__ = ["app", "isolated", "stack", "vpc"]

GROUP, ENDPOINT = "AWS::EC2::SecurityGroup", "AWS::EC2::VPCEndpoint"


class TestVpcEndpoints:
    def test_are_added_for_everything_that_a_vpc_without_internet_needs(
        self, world: World, stack: cdk.Stack, vpc: ec2.IVpc, flattened: Callable[[Any], str]
    ) -> None:
        added = add_vpc_endpoints(vpc)

        made = [resource["Properties"] for resource in world.resources(stack, ENDPOINT).values()]
        services = {re.sub(r"com\.amazonaws\.[^.]*\.", "", flattened(each["ServiceName"])): each for each in made}
        assert set(services) == set(added)
        gateway = services.pop("s3")
        assert gateway["VpcEndpointType"] == "Gateway"
        assert gateway["RouteTableIds"] == ["rtb-a", "rtb-b"]
        for interface in services.values():
            assert interface["PrivateDnsEnabled"] is True
            assert interface["SubnetIds"] == ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
            assert len(interface["SecurityGroupIds"]) == 1

    def test_let_nobody_in_but_the_vpc(self, world: World, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=0)
        add_vpc_endpoints(vpc)

        (rule,) = world.only(stack, GROUP)["Properties"]["SecurityGroupIngress"]
        assert (rule["CidrIp"]["Fn::GetAtt"][1], rule["FromPort"], rule["ToPort"]) == ("CidrBlock", 443, 443)
        found = [
            (violation.rule_name, resource.construct_path)
            for pack in (AwsSolutionsChecks(), NIST80053R5Checks())
            for violation in pack.validate_scope(stack).violations or []
            for resource in violation.violating_resources
        ]
        assert not [finding for finding in found if "Triton" in str(finding[1])]

    def test_leave_out_what_the_vpc_has(self, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        assert set(add_vpc_endpoints(vpc, exclude=["s3", "logs", "monitoring", "sts"])) == {
            "ecr.api",
            "ecr.dkr",
            "sagemaker.runtime",
        }

    def test_a_text_instead_of_a_list_is_rejected(self, messages: Messages, vpc: ec2.IVpc) -> None:
        with messages.raises(ConfigurationError):
            add_vpc_endpoints(vpc, exclude="s3")

    def test_may_be_the_gateway_alone(self, world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        others = ["ecr.api", "ecr.dkr", "logs", "monitoring", "sts", "sagemaker.runtime"]

        assert set(add_vpc_endpoints(vpc, exclude=others)) == {"s3"}
        assert not world.resources(stack, GROUP)

    @pytest.mark.parametrize("unknown", ["vpc_cidr_block", "private_subnet_route_table_ids"])
    def test_need_to_know_the_vpc(self, messages: Messages, stack: cdk.Stack, unknown: str) -> None:
        known: Any = {name: value for name, value in VPC.items() if name != unknown}
        vpc = ec2.Vpc.from_vpc_attributes(stack, "Unknown", **known)
        with messages.raises(ConfigurationError):
            add_vpc_endpoints(vpc)

    @pytest.mark.parametrize("again", [{}, {"store_functions": True, "exclude": ["s3"]}], ids=["the same", "more"])
    def test_cannot_be_added_twice(self, messages: Messages, vpc: ec2.IVpc, again: dict[str, Any]) -> None:
        add_vpc_endpoints(vpc, exclude=["logs"])
        with messages.raises(ConfigurationError):
            add_vpc_endpoints(vpc, **again)

    def test_are_not_left_out_by_a_name_that_is_none(self, messages: Messages, vpc: ec2.IVpc) -> None:
        with messages.raises(ConfigurationError):
            add_vpc_endpoints(vpc, exclude=["S3"])

    def test_go_to_the_subnets_that_were_given(self, world: World, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=0)
        add_vpc_endpoints(vpc, subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC), exclude=["s3"])

        for endpoint in world.resources(stack, ENDPOINT).values():
            subnets = endpoint["Properties"]["SubnetIds"]
            assert [subnet["Ref"][:15] for subnet in subnets] == ["OwnPublicSubnet", "OwnPublicSubnet"]

    def test_go_to_subnets_that_were_imported_without_their_zones(
        self, world: World, stack: cdk.Stack, vpc: ec2.IVpc
    ) -> None:
        ids = ["subnet-1", "subnet-2"]
        subnets = [ec2.Subnet.from_subnet_id(stack, id, id) for id in ids]
        add_vpc_endpoints(vpc, subnets=ec2.SubnetSelection(subnets=subnets), exclude=["s3"])

        assert all(each["Properties"]["SubnetIds"] == ids for each in world.resources(stack, ENDPOINT).values())


class TestEveryAddressOfTheVpcIsLetIn:
    """A subnet may be in another CIDR block than the first one, as is common for clusters of containers."""

    @staticmethod
    def let_in(world: World, stack: cdk.Stack) -> list[Any]:
        rules = world.only(stack, GROUP)["Properties"]["SecurityGroupIngress"]
        assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == {(443, 443)}
        return [rule["CidrIp"] for rule in rules]

    def test_of_an_imported_vpc(self, world: World, stack: cdk.Stack) -> None:
        blocks = ["10.0.1.0/24", "100.64.0.0/18"]
        known: Any = VPC | {"private_subnet_ipv4_cidr_blocks": blocks}
        add_vpc_endpoints(ec2.Vpc.from_vpc_attributes(stack, "Vpc", **known))

        assert self.let_in(world, stack) == ["10.0.0.0/16", "100.64.0.0/18"]

    def test_of_a_vpc_that_gets_another_block(self, world: World, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        add_vpc_endpoints(isolated)
        ec2.CfnVPCCidrBlock(stack, "More", vpc_id=isolated.vpc_id, cidr_block="100.64.0.0/16")

        first, second = self.let_in(world, stack)
        assert (list(first), second) == (["Fn::GetAtt"], "100.64.0.0/16")
