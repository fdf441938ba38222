"""A VPC as CDK makes one, with VPC endpoints, deployed, changed and deleted; read back through the API of EC2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Template

from cdk_triton import add_vpc_endpoints

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

    from cdk_triton_local.aws import LocalAws


def template(port: int = 6379, *, nat_gateways: int = 1) -> dict[str, Any]:
    """A VPC with everything that CDK puts into one, and a Model in it."""
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "Stack")
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=nat_gateways)
    vpc.add_flow_log("Flows")  # what security packs ask of a VPC
    add_vpc_endpoints(vpc, exclude=["ecr.api", "ecr.dkr", "logs", "monitoring", "sts"])
    features, instances = (ec2.SecurityGroup(stack, name, vpc=vpc) for name in ("Features", "Instances"))
    features.connections.allow_from(instances, ec2.Port.tcp(port))
    features.add_ingress_rule(ec2.Peer.ipv4("10.0.0.0/16"), ec2.Port.tcp(port))
    sagemaker.CfnModel(
        stack,
        "Model",
        execution_role_arn="arn:aws:iam::123456789012:role/role",
        primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(image="i", model_data_url="s3://b/k.tar.gz"),
        vpc_config=sagemaker.CfnModel.VpcConfigProperty(
            subnets=[subnet.subnet_id for subnet in vpc.private_subnets],
            security_group_ids=[instances.security_group_id],
        ),
        enable_network_isolation=True,
    )
    for name, value in (("VpcId", vpc.vpc_id), ("Features", features.security_group_id)):
        cdk.CfnOutput(stack, f"{name}Output", value=value)
    made = dict(Template.from_stack(stack).to_json())
    made.pop("Parameters", None)
    made.pop("Rules", None)
    return made


@pytest.fixture(name="deployed", scope="module")
def _deployed(deployer: Deployer) -> dict[str, str]:
    """The outputs of the stack, its name among them."""
    name = deployer.new_name()
    assert deployer.deploy(template(), name) == "CREATE_COMPLETE", deployer.raw_events(name)
    outputs = {
        each["OutputKey"].removesuffix("Output"): each["OutputValue"] for each in deployer.describe(name)["Outputs"]
    }
    return outputs | {"stack": name}


def test_a_flow_log_is_recorded(deployer: Deployer, deployed: dict[str, str]) -> None:
    resources = deployer.client.describe_stack_resources(StackName=deployed["stack"])["StackResources"]
    (flow_log,) = (each for each in resources if each["ResourceType"] == "AWS::EC2::FlowLog")
    assert flow_log["PhysicalResourceId"].startswith("fl-")


def test_the_vpc_has_its_subnets_and_gateways(local_aws: LocalAws, deployed: dict[str, str]) -> None:
    client, own = local_aws.client("ec2"), [{"Name": "vpc-id", "Values": [deployed["VpcId"]]}]

    subnets = client.describe_subnets(Filters=own)["Subnets"]
    assert len(subnets) == 4
    assert len({subnet["AvailabilityZone"] for subnet in subnets}) == 2
    tables = client.describe_route_tables(Filters=own)["RouteTables"]
    gateways = [
        [route.get("NatGatewayId", route.get("GatewayId", ""))[:4] for route in table["Routes"]] for table in tables
    ]
    # Each table has its local route, and one for S3 by the VPC endpoint; private subnets go out through the NAT.
    assert sum("nat-" in table for table in gateways) == 2
    assert sum("igw-" in table for table in gateways) == 2
    names = client.describe_vpc_attribute(VpcId=deployed["VpcId"], Attribute="enableDnsHostnames")
    assert names["EnableDnsHostnames"] == {"Value": True}


def test_the_vpc_has_its_endpoints(local_aws: LocalAws, deployed: dict[str, str]) -> None:
    own = [{"Name": "vpc-id", "Values": [deployed["VpcId"]]}]
    endpoints = local_aws.client("ec2").describe_vpc_endpoints(Filters=own)["VpcEndpoints"]

    kinds = {endpoint["ServiceName"].split(".", 3)[-1]: endpoint["VpcEndpointType"] for endpoint in endpoints}
    assert kinds == {"s3": "Gateway", "sagemaker.runtime": "Interface"}


def test_the_model_says_where_it_runs(local_aws: LocalAws, deployed: dict[str, str]) -> None:
    client = local_aws.client("sagemaker")
    (summary,) = client.list_models(NameContains=deployed["stack"])["Models"]
    model = client.describe_model(ModelName=summary["ModelName"])

    assert [subnet[:7] for subnet in model["VpcConfig"]["Subnets"]] == ["subnet-", "subnet-"]


def test_rules_change_and_everything_goes_away(
    local_aws: LocalAws, deployer: Deployer, deployed: dict[str, str]
) -> None:
    client = local_aws.client("ec2")

    def ports() -> list[int]:
        (group,) = client.describe_security_groups(GroupIds=[deployed["Features"]])["SecurityGroups"]
        return sorted({permission["FromPort"] for permission in group["IpPermissions"]})

    assert ports() == [6379]
    assert deployer.deploy(template(6380), deployed["stack"]) == "UPDATE_COMPLETE"
    assert ports() == [6380]
    assert deployer.delete(deployed["stack"]) == "DELETE_COMPLETE"
    assert deployed["VpcId"] not in [vpc["VpcId"] for vpc in client.describe_vpcs()["Vpcs"]]
    gateways = [each for each in client.describe_nat_gateways()["NatGateways"] if each["VpcId"] == deployed["VpcId"]]
    assert {each["State"] for each in gateways} <= {"deleted"}
