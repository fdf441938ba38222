"""The VPC endpoints that models, builds and callers need in a VPC without a way to the internet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.acknowledgements import acknowledge, acknowledge_nist

__all__ = ["VPC_ENDPOINTS", "add_vpc_endpoints"]

VPC_ENDPOINTS: Mapping[str, str] = {
    "s3": "archives, and what builds read and write",
    "ecr.api": "who may pull an image",
    "ecr.dkr": "the images; their layers come from S3",
    "logs": "what containers and builds say",
    "monitoring": "the metrics of the instances",
    "sts": "the credentials of the execution role",
    "sagemaker.runtime": "callers within the VPC that invoke endpoints",
}
"""Each service that a VPC without internet needs a VPC endpoint for, and what for.

Source: "Configure Amazon SageMaker Canvas in a VPC without internet access" (`canvas-vpc`), the fullest list in
SageMaker's developer guide, without what only Canvas uses. `host-vpc` names S3, `interface-vpc-endpoint` the runtime.
"""


def add_vpc_endpoints(
    vpc: ec2.IVpc, *, subnets: ec2.SubnetSelection | None = None, without: Collection[str] = ()
) -> Mapping[str, ec2.VpcEndpoint]:
    """Add to a VPC what endpoints, builds and callers need where it has no way to the internet.

    The one for S3 is a gateway and costs nothing; each of the others costs by the hour and subnet. They are children of
    the VPC named `Triton<service>`, and answer to the names that AWS's SDKs use. Their one security group lets the VPC
    in, on port 443.

    An endpoint of the same stack may come up before them: `model.node.add_dependency(*endpoints.values())`.

    Args:
        vpc: the VPC; an imported one must know its route tables and its CIDR block.
        subnets: where the interfaces go; by default the private subnets.
        without: services of `VPC_ENDPOINTS` that the VPC has endpoints for already, which AWS refuses to have twice.

    Returns:
        The new ones, by service.

    Raises:
        ConfigurationError: `without` names another service, or an imported VPC lacks what is needed of it.
    """
    without = {without} if isinstance(without, str) else set(without)
    if unknown := sorted(without - set(VPC_ENDPOINTS)):
        raise ConfigurationError(
            f"without={unknown[0]!r} is no service that gets a VPC endpoint: use any of {', '.join(VPC_ENDPOINTS)}"
        )
    try:
        return _add_vpc_endpoints(vpc, subnets, [service for service in VPC_ENDPOINTS if service not in without])
    except RuntimeError as error:  # jsii's, of whatever CDK refuses
        if not any(sign in str(error) for sign in ("vpcCidrBlock", "route table")):
            raise
        raise ConfigurationError(
            f"{vpc.node.path} was imported without its route tables or its CIDR block, which VPC endpoints need: "
            "import it by Vpc.from_lookup, or give from_vpc_attributes vpc_cidr_block and the ids of the route tables"
        ) from error


def _add_vpc_endpoints(
    vpc: ec2.IVpc, subnets: ec2.SubnetSelection | None, services: Sequence[str]
) -> Mapping[str, ec2.VpcEndpoint]:
    group = _endpoints_group(vpc) if set(services) - {"s3"} else None
    added: dict[str, ec2.VpcEndpoint] = {}
    for service in services:
        id = f"Triton{''.join(part.capitalize() for part in service.split('.'))}"  # noqa: A001 - CDK's name
        if group is None or service == "s3":
            added[service] = vpc.add_gateway_endpoint(id, service=ec2.GatewayVpcEndpointAwsService.S3)
        else:
            aws = ec2.InterfaceVpcEndpointAwsService(service)
            # Not `open`, by which CDK would add the same rule once more for each.
            added[service] = vpc.add_interface_endpoint(
                id, service=aws, subnets=subnets, security_groups=[group], open=False
            )
    return added


def _endpoints_group(vpc: ec2.IVpc) -> ec2.SecurityGroup:
    # Beside the VPC and not below it: to Python, an imported one is no Construct.
    scope = vpc.node.scope if isinstance(vpc.node.scope, Construct) else Stack.of(vpc)
    description = "cdk-triton: VPC endpoints of AWS services"
    group = ec2.SecurityGroup(scope, f"{vpc.node.id}TritonEndpoints", vpc=vpc, description=description)
    group.add_ingress_rule(ec2.Peer.ipv4(vpc.vpc_cidr_block), ec2.Port.tcp(443), "from within the VPC")
    reason = "Only the VPC's own addresses, on port 443; cdk-nag cannot read a CIDR by reference."
    acknowledge(group, "EC23", reason)
    for rule in ("EC2RestrictedCommonPorts", "EC2RestrictedSSH"):
        acknowledge_nist(group, rule, reason)
    return group
