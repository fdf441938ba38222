"""Functions in a VPC, while subnets without a route to the internet are a fault of the local AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

CODE = """
import functools, time, urllib.request
import boto3
from botocore.config import Config

@functools.cache
def client(service):
    return boto3.client(service, config=Config(connect_timeout=100, retries={"total_max_attempts": 1}))

CALLS = {
    "s3": lambda url: client("s3").list_buckets(),
    "sagemaker.api": lambda url: client("sagemaker").list_endpoints(),
    "sagemaker.runtime": lambda url: client("sagemaker-runtime").invoke_endpoint(EndpointName="none", Body=b""),
    "states": lambda url: client("stepfunctions").list_state_machines(),
    "response": lambda url: urllib.request.urlopen(urllib.request.Request(url, b"{}", method="PUT"), timeout=100),
}

def handler(event, context):
    failed = {}
    for name, attempt in CALLS.items():
        began = time.time()
        try:
            attempt(event)
        except Exception as error:
            failed[name] = type(error).__name__, int((time.time() - began) // 100)
    return failed
"""
"""Returns the calls that fail, each with its error, and with the time that it takes, in hundreds of seconds."""

TIMED_OUT = {
    "s3": ["ConnectTimeoutError", 1],
    "sagemaker.api": ["ConnectTimeoutError", 1],
    "sagemaker.runtime": ["ConnectTimeoutError", 1],
    "states": ["ConnectTimeoutError", 1],
    "response": ["URLError", 1],
}


def template(subnets: Sequence[str]) -> dict[str, Any]:
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}
    function = {
        "Code": {"ZipFile": CODE},
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.13",
        "Timeout": 900,
    }
    if subnets:
        function["VpcConfig"] = {"SecurityGroupIds": ["sg-1"], "SubnetIds": subnets}
    return {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": role},
            "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
        },
        "Outputs": {"Function": {"Value": {"Ref": "Function"}}},
    }


@pytest.fixture(name="stack", scope="module")
def _stack(deployer: Deployer) -> str:
    name = deployer.new_name()
    assert deployer.deploy(template(["subnet-1"]), name) == "CREATE_COMPLETE"
    return name


class Network:
    """A VPC with a function in its two subnets, which have the main route table of the VPC."""

    def __init__(self, deployer: Deployer, stack: str) -> None:
        self._deployer, self._stack = deployer, stack
        self.ec2 = deployer.aws.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{number}.0/24")["Subnet"]["SubnetId"]
            for number in range(2)
        ]
        own = [{"Name": "vpc-id", "Values": [self.vpc]}]
        (table,) = self.ec2.describe_route_tables(Filters=own)["RouteTables"]
        self.table = table["RouteTableId"]
        self.put_into(self.subnets)

    def put_into(self, subnets: list[str]) -> None:
        assert self._deployer.deploy(template(subnets), self._stack) == "UPDATE_COMPLETE"

    def add_route_table(self, subnet: str) -> str:
        table: str = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        self.ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
        return table

    def add_endpoint(self, service: str, **more: Any) -> str:
        request = {"VpcEndpointType": "Interface", "PrivateDnsEnabled": True, **more}
        name = f"com.amazonaws.us-east-1.{service}"
        made = self.ec2.create_vpc_endpoint(VpcId=self.vpc, ServiceName=name, **request)
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def add_route(self, gateway: str) -> None:
        makers: dict[str, Callable[[], dict[str, str]]] = {
            "NAT": lambda: {
                "NatGatewayId": self.ec2.create_nat_gateway(SubnetId=self.subnets[0])["NatGateway"]["NatGatewayId"]
            },
            "internet": lambda: {
                "GatewayId": self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
            },
        }
        self.ec2.create_route(RouteTableId=self.table, DestinationCidrBlock="0.0.0.0/0", **makers[gateway]())

    def unanswered(self) -> dict[str, list[Any]]:
        """The calls of the function that get no answer; see `CODE`."""
        mailbox = self._deployer.aws.open_mailbox()
        (output,) = self._deployer.describe(self._stack)["Outputs"]
        found: dict[str, list[Any]] = self._deployer.aws.invoke_function(output["OutputValue"], mailbox.url)
        mailbox.close()
        return found


@pytest.fixture(name="network")
def _network(deployer: Deployer, stack: str) -> Iterator[Network]:
    made = Network(deployer, stack)
    deployer.aws.inject("isolated-subnets")
    yield made
    deployer.aws.inject()


@pytest.mark.slow
def test_only_a_service_with_a_vpc_endpoint_answers(deployer: Deployer, network: Network) -> None:
    assert network.unanswered() == TIMED_OUT

    network.add_endpoint("s3", VpcEndpointType="Gateway", RouteTableIds=[network.table])
    runtime = network.add_endpoint("sagemaker.runtime")
    assert network.unanswered().keys() == {"sagemaker.api", "states"}

    network.add_endpoint("sagemaker.api")
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[runtime])
    network.add_endpoint("states", PrivateDnsEnabled=False)
    assert network.unanswered().keys() == {"sagemaker.runtime", "states"}

    assert deployer.aws.faults.injected == {"isolated-subnets": 3}
    deployer.aws.inject()
    assert network.unanswered() == {}


def test_every_subnet_needs_the_route_or_the_vpc_endpoint(network: Network) -> None:
    other = network.add_route_table(network.subnets[1])
    network.add_endpoint("s3", VpcEndpointType="Gateway", RouteTableIds=[network.table])
    assert network.unanswered() == TIMED_OUT

    network.add_route("NAT")
    assert network.unanswered() == TIMED_OUT

    network.add_endpoint("s3", VpcEndpointType="Gateway", RouteTableIds=[other])
    assert network.unanswered().keys() == TIMED_OUT.keys() - {"s3", "response"}


def test_no_way_leads_through_an_internet_gateway(network: Network) -> None:
    """The network interface of a function has no public address."""
    network.add_route("internet")
    assert network.unanswered() == TIMED_OUT


@pytest.mark.parametrize("subnets", [[], ["subnet-of-another-team"]], ids=["without VPC", "imported"])
def test_other_functions_reach_everything(network: Network, subnets: list[str]) -> None:
    network.put_into(subnets)
    assert network.unanswered() == {}
