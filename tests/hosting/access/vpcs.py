"""An app in Ireland with a VPC of its own and an imported one; for the tests of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

if TYPE_CHECKING:
    from tests.hosting.conftest import World

__all__ = ["IRELAND", "VPC", "app", "isolated", "stack", "vpc"]

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "vpc_cidr_block": "10.0.0.0/16",
    "availability_zones": ["eu-west-1a", "eu-west-1b"],
    "private_subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "private_subnet_route_table_ids": ["rtb-a", "rtb-b"],
}


@pytest.fixture
def app(world: World) -> cdk.App:
    return world.app()


@pytest.fixture
def stack(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Stack", env=IRELAND)


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(stack, "Vpc", **VPC)  # type: ignore[arg-type]  # a mapping of several types


@pytest.fixture
def isolated(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=0)
