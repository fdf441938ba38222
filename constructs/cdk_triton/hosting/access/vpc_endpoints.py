"""The VPC endpoints that models, builds, callers and a store's functions need in a VPC without internet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, collapse_addresses
from typing import Final

import jsii
from aws_cdk import Annotations, Aspects, CfnResource, IAspect
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.network import Network
from cdk_triton.hosting.naming.acknowledgements import acknowledge, acknowledge_nist
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["VPC_ENDPOINTS", "add_vpc_endpoints", "await_network", "await_route_to", "await_vpc_endpoints"]

NO_WAY_OUT_WARNING: Final = "cdk-triton:NoWayOut"

PROMOTION_WARNING: Final = "cdk-triton:NoRouteToSourceStore"

VPC_ENDPOINTS: Mapping[str, str] = {
    "s3": "archives, and what builds read and write",
    "ecr.api": "who may pull an image",
    "ecr.dkr": "the images; their layers come from S3",
    "logs": "the logs of containers and builds",
    "monitoring": "the metrics of the instances",
    "sts": "the credentials of the execution role",
    "sagemaker.runtime": "callers within the VPC that invoke endpoints",
}
"""Each service that a VPC without internet needs a VPC endpoint for, and what for.

Source: "Configure Amazon SageMaker Canvas in a VPC without internet access" (`canvas-vpc`), the fullest list in
SageMaker's developer guide, without what only Canvas uses. `host-vpc` names S3, `interface-vpc-endpoint` the runtime.
"""

FUNCTION_ENDPOINTS: Mapping[str, str] = {
    "states": "the start of a delivery",
    "sagemaker.api": "Processing jobs, and the state of scaled endpoints",
    "cloudformation": "the name of a scaled endpoint, and the check of a platform of published ensembles",
    "codebuild": "builds on CodeBuild",
}
"""Each service that the functions of a store call in addition to those of `VPC_ENDPOINTS`, and what for.

The handlers create a client of boto3 for each of these services. KMS is not among them, because S3 uses the keys. Nor
is a service for the responses to CloudFormation, which go to an S3 bucket ("Setting up VPC endpoints for AWS
CloudFormation").
"""

REQUIRED: Mapping[str, Sequence[str]] = {
    "instances": ("s3",),
    "builds": ("s3", "ecr.api", "ecr.dkr"),
    "functions": ("s3", "states"),
    "platform checks": ("cloudformation",),
    "waits for scaled endpoints": ("cloudformation", "sagemaker.api"),
}
"""The services that each part needs to start. Without the others it starts, but its logs and metrics are missing.

For instances, `host-vpc` requires only S3. This library does not set the `ImageConfig` of a Model, whose
`RepositoryAccessMode` is `Vpc` for a private registry in the VPC and `Platform` for an image in ECR. Builds use ECR
from inside the VPC. To check a platform change of published ensembles, the functions read the status of the stack.
They read the name and the status of an endpoint that is being scaled, and wait for 50 minutes if there is no answer.
"""

_OF_THE_STORE: Final = ("functions", "platform checks", "waits for scaled endpoints")
"""The parts that the functions of a store do."""


@checked
def add_vpc_endpoints(
    vpc: ec2.IVpc,
    *,
    subnets: ec2.SubnetSelection | None = None,
    exclude: Collection[str] = (),
    store_functions: bool = False,
) -> Mapping[str, ec2.VpcEndpoint]:
    """Add VPC endpoints that SageMaker endpoints, builds and callers need in a VPC without internet access.

    The VPC endpoint for S3 is a gateway endpoint, and costs nothing. The others are interface endpoints, which AWS
    bills by hour and subnet. All VPC endpoints are children of the VPC, with the ids `Triton<service>`. The interface
    endpoints have private DNS names, so that the AWS SDKs use them, and share one security group, which allows port 443
    from the VPC.

    If a resource of this library in the same VPC and stack needs these VPC endpoints, CloudFormation creates the VPC
    endpoints first, whatever the order of your calls.

    Args:
        vpc: the VPC. If you import it, its route tables and its CIDR block must be known.
        subnets: the subnets for the interface endpoints; by default the private subnets.
        exclude: services for which the VPC already has endpoints. AWS rejects a second VPC endpoint for a service.
        store_functions: whether the functions of a store run in the VPC, too. They call more services
            (`FUNCTION_ENDPOINTS`).

    Returns:
        The new VPC endpoints, by service.

    Raises:
        ConfigurationError: `exclude` names a service that this function does not add; this function has been called for
            the VPC already; an imported VPC lacks its route tables or CIDR block; the VPC has no DNS; or `subnets`
            select none, several in one availability zone, or one of another VPC.
    """
    services = [*VPC_ENDPOINTS, *(FUNCTION_ENDPOINTS if store_functions else ())]
    if unknown := sorted(set(exclude) - set(services)):
        raise ConfigurationError(
            f"exclude={unknown[0]!r} is not a service that gets a VPC endpoint: use any of {', '.join(services)}"
        )
    if any(vpc.node.try_find_child(_id(service)) is not None for service in (*VPC_ENDPOINTS, *FUNCTION_ENDPOINTS)):
        raise ConfigurationError(
            f"{path_of(vpc)} has the VPC endpoints of add_vpc_endpoints already: use the endpoints that the first call "
            "returned, and pass store_functions=True to the first call if a store's functions run in the VPC too"
        )
    _check_dns(vpc)
    if subnets is not None and subnets.subnets is not None:
        _check_subnets(vpc, subnets.subnets)
    try:
        return _add_vpc_endpoints(vpc, subnets, [service for service in services if service not in exclude])
    except RuntimeError as error:  # jsii's, of anything that the CDK rejects
        if not any(sign in str(error) for sign in ("vpcCidrBlock", "route table")):
            raise
        raise ConfigurationError(
            f"{vpc.node.path} was imported without its route tables or its CIDR block, which VPC endpoints need: "
            "import it by Vpc.from_lookup, or pass vpc_cidr_block and the route tables' ids to from_vpc_attributes"
        ) from None  # jsii's words and traceback would hide the sentence


def _check_dns(vpc: ec2.IVpc) -> None:
    """Reject a VPC without DNS: private DNS names need both attributes (`PrivateDnsEnabled` of CreateVpcEndpoint)."""
    resource = vpc.node.default_child
    if not isinstance(resource, ec2.CfnVPC):
        return
    for name in ("enable_dns_support", "enable_dns_hostnames"):
        if getattr(resource, name) is False:
            raise ConfigurationError(
                f"{path_of(vpc)} has {name}=False, but AWS rejects VPC endpoints with private DNS names in such a VPC: "
                f"set {name}=True"
            )


def _check_subnets(vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
    """Reject subnets that AWS rejects for an interface endpoint."""
    zones = [zone for subnet in subnets if (zone := _zone(subnet)) is not None]
    theirs = [each for each in subnets if isinstance(each.node.scope, ec2.Vpc) and each.node.scope is not vpc]
    fault = None
    if not subnets:
        fault = "are none, but an interface endpoint needs one", "omit subnets for the private subnets"
    elif theirs:
        fault = f"include {theirs[0].node.path}, which is in another VPC", "give subnets of this VPC"
    elif len(set(zones)) < len(zones):
        fault = "are several in one availability zone, but AWS takes one of each zone", "give one of each zone"
    if fault is not None:
        raise ConfigurationError(f"subnets of the VPC endpoints of {path_of(vpc)} {fault[0]}: {fault[1]}")


def _zone(subnet: ec2.ISubnet) -> str | None:
    """The availability zone of a subnet; None for one that was imported without it."""
    try:
        return subnet.availability_zone
    except RuntimeError:  # jsii's, of the getter
        return None


def await_network(resource: CfnResource, network: Network, who: IConstruct, what: str) -> None:
    """Create a resource after the route out of its subnets and the VPC endpoints, and warn if there is neither.

    The search runs when the app is complete. The resource depends on the VPC endpoints that are `REQUIRED` and in its
    own stack, because two stacks might otherwise depend on each other. It does not depend on other VPC endpoints, such
    as those of logs and of callers, whose policies may name something that is created after the resource.

    Args:
        resource: what starts something in the VPC.
        network: the subnets and security groups that it uses.
        who: the construct that gets the warning.
        what: what starts: a key of `REQUIRED`.
    """
    resource.node.add_dependency(*network.established)
    await_vpc_endpoints(resource, network, who, what)


def await_vpc_endpoints(resource: CfnResource, network: Network, who: IConstruct, what: str) -> None:
    """Like `await_network`, for a resource that uses the network but is not in it.

    Args:
        resource: what uses functions in the VPC.
        network: the subnets and security groups that the functions use.
        who: the construct that gets the warning.
        what: what starts: a key of `REQUIRED`.
    """
    Aspects.of(resource).add(_EgressCheck(network, who, what))


def await_route_to(bucket: s3.IBucket, network: Network, who: Construct) -> None:
    """Warn if functions in a VPC certainly have no route to a bucket that may be in another region.

    A VPC endpoint serves its own region only, and an imported bucket does not say which region it is in.

    Args:
        bucket: the bucket that the functions read.
        network: the subnets and security groups of the functions.
        who: the store, which is warned.
    """
    Aspects.of(who).add(_RouteCheck(bucket, network, who))


@jsii.implements(IAspect)
class _RouteCheck:
    """Looks for a route to the internet, when the app is complete."""

    def __init__(self, bucket: s3.IBucket, network: Network, who: Construct) -> None:
        self._bucket, self._network, self._who = bucket, network, who

    def visit(self, node: IConstruct) -> None:
        if node is not self._who or not _isolated(self._network, node.node.root.node.find_all()):
            return
        Annotations.of(self._who).add_warning_v2(
            PROMOTION_WARNING,
            f"{path_of(self._who)} promotes from {path_of(self._bucket)}, but vpc_subnets of "
            f"{self._network.vpc.node.path} have no route to the internet, and VPC endpoints reach S3 of their own "
            "region only. Select subnets with a NAT gateway, or acknowledge this if both stores are in one region",
        )


@jsii.implements(IAspect)
class _EgressCheck:
    """Looks for routes and VPC endpoints by which subnets reach AWS, when the app is complete."""

    def __init__(self, network: Network, who: IConstruct, what: str) -> None:
        self._network, self._who, self._what = network, who, what

    def visit(self, node: IConstruct) -> None:
        vpc, stack = self._network.vpc, stack_of(node)
        for service, endpoint in _vpc_endpoints(vpc, stack.node.find_all()):
            if service in REQUIRED[self._what] and stack_of(endpoint) is stack:
                node.node.add_dependency(endpoint)
        if not _isolated(self._network, vpc.node.find_all()):
            return
        everything = node.node.root.node.find_all()  # slow in a large app
        present = {service for service, _ in _vpc_endpoints(vpc, everything)}
        missing = [service for service in REQUIRED[self._what] if service not in present]
        if missing and _isolated(self._network, everything):
            offered = [*VPC_ENDPOINTS, *(FUNCTION_ENDPOINTS if self._what in _OF_THE_STORE else ())]
            self._warn(missing, [service for service in offered if service in present])

    def _warn(self, missing: Sequence[str], present: Sequence[str]) -> None:
        arguments = ["vpc"]
        arguments += [f"exclude={present}"] if present else []
        arguments += ["store_functions=True"] if self._what in _OF_THE_STORE else []
        call = f"add_vpc_endpoints({', '.join(arguments)})"
        Annotations.of(self._who).add_warning_v2(
            NO_WAY_OUT_WARNING,
            f"vpc_subnets of {self._network.vpc.node.path} have no route to the internet, and this app adds no VPC "
            f"endpoint for {', '.join(missing)} to the VPC. So {self._what} would wait until they "
            f"time out. Call {call}, select subnets with a NAT gateway, or acknowledge this if the VPC has another "
            "route to these services",
        )


def _vpc_endpoints(vpc: ec2.IVpc, constructs: Iterable[IConstruct]) -> Iterator[tuple[str, ec2.CfnVPCEndpoint]]:
    """The VPC endpoints of a VPC for the services of this module, each with its service."""
    for each in constructs:
        if isinstance(each, ec2.CfnVPCEndpoint) and _is_in_vpc(each, vpc):
            name = json.dumps(stack_of(each).resolve(each.service_name)).rstrip('"]}')
            services = (*VPC_ENDPOINTS, *FUNCTION_ENDPOINTS)
            yield from ((service, each) for service in services if name.endswith(f".{service}"))


def _is_in_vpc(resource: ec2.CfnVPCEndpoint | ec2.CfnVPCCidrBlock, vpc: ec2.IVpc) -> bool:
    """Compares the texts of the ids, because each import of a VPC may make a token of its own."""
    if resource.vpc_id == vpc.vpc_id:
        return True
    theirs, ours = stack_of(resource), stack_of(vpc)
    text = json.dumps(theirs.resolve(resource.vpc_id))
    if text != json.dumps(ours.resolve(vpc.vpc_id)):
        return False
    # These name something else in each stack, and an export is another in each environment.
    local = any(f'"{name}"' in text for name in ("Ref", "Fn::GetAtt", "Fn::Sub"))
    return theirs is ours or (not local and theirs.environment == ours.environment)


def _isolated(network: Network, constructs: Iterable[IConstruct]) -> bool:
    """Whether some of the subnets certainly have no route to the internet, unless it is among the constructs.

    That is certain of subnets that were imported as isolated, and of a VPC that the app makes with all its routes.
    """
    vpc = network.vpc
    made = vpc.private_subnets if isinstance(vpc, ec2.Vpc) else []
    suspected = [subnet for subnet in (*vpc.isolated_subnets, *made) if subnet.subnet_id in network.subnets]
    if not suspected:
        return False
    routed = {
        each.route_table_id
        for each in constructs
        if isinstance(each, ec2.CfnRoute)
        and (each.destination_cidr_block == "0.0.0.0/0" or each.destination_ipv6_cidr_block == "::/0")
    }
    return any(_route_table(subnet) not in routed for subnet in suspected)


def _route_table(subnet: ec2.ISubnet) -> str | None:
    try:
        return subnet.route_table.route_table_id
    except RuntimeError:  # jsii's, of the getter
        return None


def _add_vpc_endpoints(
    vpc: ec2.IVpc, subnets: ec2.SubnetSelection | None, services: Sequence[str]
) -> Mapping[str, ec2.VpcEndpoint]:
    group = _endpoints_group(vpc) if set(services) - {"s3"} else None
    added: dict[str, ec2.VpcEndpoint] = {}
    for service in services:
        id = _id(service)
        if group is None or service == "s3":
            added[service] = vpc.add_gateway_endpoint(id, service=ec2.GatewayVpcEndpointAwsService.S3)
        else:
            aws = ec2.InterfaceVpcEndpointAwsService(service)
            # Not `open`, by which CDK would add the same rule once more for each.
            added[service] = vpc.add_interface_endpoint(
                id, service=aws, subnets=subnets, security_groups=[group], open=False
            )
    return added


def _further_blocks(vpc: ec2.IVpc) -> list[str]:
    """The CIDR blocks of imported subnets that are not in the VPC's primary block, so in another block of the VPC."""
    try:
        primary = IPv4Network(vpc.vpc_cidr_block)
        subnets = [*vpc.public_subnets, *vpc.private_subnets, *vpc.isolated_subnets]
        blocks = {IPv4Network(subnet.ipv4_cidr_block) for subnet in subnets}
    except (RuntimeError, ValueError):  # jsii's, of a subnet imported without its block; a token
        return []
    return [str(block) for block in collapse_addresses(blocks) if not block.subnet_of(primary)]


@jsii.implements(IAspect)
class _LaterBlocks:
    """Lets in the CIDR blocks that the app associates with the VPC, when the app is complete."""

    def __init__(self, vpc: ec2.IVpc) -> None:
        self._vpc = vpc

    def visit(self, node: IConstruct) -> None:
        if not isinstance(node, ec2.SecurityGroup):
            return
        for each in node.node.root.node.find_all():
            if isinstance(each, ec2.CfnVPCCidrBlock) and each.cidr_block and _is_in_vpc(each, self._vpc):
                node.add_ingress_rule(ec2.Peer.ipv4(each.cidr_block), ec2.Port.tcp(443), "from within the VPC")


def _id(service: str) -> str:
    return f"Triton{''.join(part.capitalize() for part in service.split('.'))}"


def _endpoints_group(vpc: ec2.IVpc) -> ec2.SecurityGroup:
    # Beside the VPC and not below it: to Python, an imported one is no Construct.
    scope = vpc.node.scope if isinstance(vpc.node.scope, Construct) else stack_of(vpc)
    description = "cdk-triton: VPC endpoints of AWS services"
    group = ec2.SecurityGroup(scope, f"{vpc.node.id}TritonEndpoints", vpc=vpc, description=description)
    for block in (vpc.vpc_cidr_block, *_further_blocks(vpc)):
        group.add_ingress_rule(ec2.Peer.ipv4(block), ec2.Port.tcp(443), "from within the VPC")
    Aspects.of(group).add(_LaterBlocks(vpc))
    reason = "Only the VPC's own addresses, on port 443; cdk-nag cannot read a CIDR by reference."
    acknowledge(group, {"EC23": reason})
    acknowledge_nist(group, dict.fromkeys(("EC2RestrictedCommonPorts", "EC2RestrictedSSH"), reason))
    return group
