"""The subnets and security groups of models, builds and the store's functions, and the permissions to use them.

SageMaker puts a network interface of each instance into one of the subnets, "not connected to the internet". A model in
a VPC downloads its archive through this interface: if the subnets have no route to S3, no instance starts ("Give
SageMaker AI Hosted Endpoints Access to Resources in Your Amazon VPC" in SageMaker's developer guide, `host-vpc`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from aws_cdk import Annotations, ArnFormat
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards, skip_checkov
from cdk_triton.hosting.naming.service_names import group_description
from cdk_triton.hosting.naming.stacks import region_of, require_own_region, stack_of

__all__ = [
    "Network",
    "acknowledge_network",
    "allow_function_network",
    "allow_network",
    "allow_processing_network",
    "build_network",
    "check_network",
    "connections",
    "function_network",
    "model_network",
    "network_of",
    "network_statements",
    "vpc_config",
]

PUBLIC_SUBNETS_WARNING = "cdk-triton:PublicSubnets"

MAX_SUBNETS, MAX_SECURITY_GROUPS = 16, 5
"""The maximum numbers in a VpcConfig of SageMaker, CodeBuild and Lambda, in botocore's models."""

SAGEMAKER_PERMISSION = ("ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterfacePermission")
"""The actions by which SageMaker lets its own AWS account use an interface, and ends that."""

DESCRIBE_NETWORK = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)

PROCESSING_NETWORK = (
    *DESCRIBE_NETWORK,
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    *SAGEMAKER_PERMISSION,
)
"""SageMaker's list for the role of a Processing job in a VPC."""

FUNCTION_NETWORK = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""Lambda's list for the role of a function in a VPC: AWSLambdaVPCAccessExecutionRole, without its log actions."""


class Network(NamedTuple):
    """The network of a resource in a VPC.

    Attributes:
        vpc: the VPC.
        subnets: the ids of its subnets.
        security_groups: the ids of the security groups.
        connections: the connections of the security groups, one object because the CDK adds rules to it.
        established: the resources that make the subnets' route out of the VPC; see `await_network`.
    """

    vpc: ec2.IVpc
    subnets: Sequence[str]
    security_groups: Sequence[str]
    connections: ec2.Connections
    established: Sequence[IDependable] = ()


def check_network(vpc: ec2.IVpc | None, vpc_subnets: object, security_groups: object) -> None:
    """Reject subnets and security groups without their VPC.

    Raises:
        ConfigurationError: subnets or security groups are given, but no VPC.
    """
    if vpc is None and (vpc_subnets is not None or security_groups):
        raise ConfigurationError("vpc_subnets and security_groups need a vpc: give vpc= too, or remove both")


def build_network(
    scope: Construct,
    vpc: ec2.IVpc | None,
    vpc_subnets: ec2.SubnetSelection | None,
    security_groups: Sequence[ec2.ISecurityGroup],
) -> Network | None:
    """The network of builds, by default with a new security group that allows all outbound and no inbound traffic.

    Raises:
        ConfigurationError: the VPC is certainly in another region, a subnet or security group is certainly in another
            VPC, or `vpc_subnets` select no subnet or too many.
    """
    if vpc is None:
        return None
    _check_region(scope, vpc)
    subnets = _selected(vpc, vpc_subnets)
    _check_membership(vpc, subnets, security_groups)
    groups = list(security_groups) or [_own_group(scope, vpc, "builds")]
    return _network(vpc, subnets, groups)


def function_network(
    scope: Construct,
    vpc: ec2.IVpc | None,
    vpc_subnets: ec2.SubnetSelection | None,
    security_groups: Sequence[ec2.ISecurityGroup],
) -> Network | None:
    """The network of a store's functions, by default with a new security group, as for builds.

    Raises:
        ConfigurationError: as for builds, or subnets or security groups are given without a VPC.
    """
    check_network(vpc, vpc_subnets, security_groups)
    if vpc is None:
        return None
    _check_region(scope, vpc)
    subnets = _selected(vpc, vpc_subnets)
    _warn_of_public_subnets(
        scope,
        vpc,
        subnets,
        "Lambda functions",
        "the functions reach no bucket",
        "add_vpc_endpoints(vpc, store_functions=True)",
    )
    _check_membership(vpc, subnets, security_groups)
    groups = list(security_groups) or [_own_group(scope, vpc, "functions")]
    return _network(vpc, subnets, groups)


def model_network(
    scope: Construct,
    vpc: ec2.IVpc | None,
    vpc_subnets: ec2.SubnetSelection | None,
    security_groups: Sequence[ec2.ISecurityGroup] | None,
) -> Network | None:
    """The network of a model's instances.

    Args:
        scope: the model's construct.
        vpc: the VPC; None: SageMaker's own.
        vpc_subnets: the subnets of the VPC; by default the private subnets.
        security_groups: security groups in the VPC; by default a new one, the child `SecurityGroup`, which allows all
            outbound and no inbound traffic. Requests reach the container through SageMaker, not through the VPC.

    Raises:
        ConfigurationError: subnets or security groups are given without a VPC or are certainly in another VPC, the VPC
            is certainly in another region, or SageMaker would reject the subnets or security groups.
    """
    check_network(vpc, vpc_subnets, security_groups)
    if vpc is None:
        return None
    _check_region(scope, vpc)
    subnets = _selected(vpc, vpc_subnets)
    _check_zones(vpc, subnets)
    _warn_of_public_subnets(
        scope, vpc, subnets, "SageMaker's instances", "the instances get no archive", "add_vpc_endpoints(vpc)"
    )
    if security_groups is not None and not 1 <= len(security_groups) <= MAX_SECURITY_GROUPS:
        raise ConfigurationError(
            f"security_groups has {len(security_groups)} groups: give 1 to {MAX_SECURITY_GROUPS}, the number that "
            "SageMaker takes, or omit security_groups to get a new group for the model"
        )
    _check_membership(vpc, subnets, security_groups or ())
    groups = [_own_group(scope, vpc, "instances")] if security_groups is None else list(security_groups)
    return _network(vpc, subnets, groups)


def vpc_config(network: Network | None) -> sagemaker.CfnModel.VpcConfigProperty | None:
    """The network of a model in the form of a SageMaker Model."""
    if network is None:
        return None
    return sagemaker.CfnModel.VpcConfigProperty(
        subnets=list(network.subnets), security_group_ids=list(network.security_groups)
    )


def connections(model: Construct, network: Network | None) -> ec2.Connections:
    """The network access of a model, for CDK's `allow_to` and `allow_from`.

    Raises:
        ConfigurationError: the model is not in a VPC.
    """
    if network is None:
        raise ConfigurationError(
            f"{model.node.path} is not in a VPC, so there is no network access to manage: give the model vpc="
        )
    return network.connections


def network_of(store: object) -> Network | None:
    """The network of a store's functions in a VPC; None also for a store of another app, where it is unknown."""
    network: Network | None = getattr(store, "_network", None)
    return network


def network_statements(
    scope: Construct, network: Network, *, permission: Sequence[str], authorized: str | None = None
) -> list[Statement]:
    """The statements that let a service use network interfaces, in these subnets and security groups only.

    The actions are those of "CreateModel API: Execution Role Permissions" and of the corresponding page for CodeBuild;
    the service authorization reference of EC2 lists their resources and condition keys. The ARNs of the subnets contain
    the account of the VPC, because the subnets of a shared VPC belong to its owner.

    Args:
        scope: the construct that needs the interfaces.
        network: the subnets and security groups.
        permission: the actions on the permissions of an interface, such as `ec2:CreateNetworkInterfacePermission`, by
            which the service lets its own AWS account use the interface.
        authorized: the only service that `permission` may let use an interface. None: no limit, for a service that does
            not set the condition key `ec2:AuthorizedService`.
    """
    interfaces = _interfaces(scope)
    subnets = [_arn(scope, "subnet", subnet, account=network.vpc.env.account) for subnet in network.subnets]
    groups = [_arn(scope, "security-group", group) for group in network.security_groups]
    of_subnets = {"ArnEquals": {"ec2:Subnet": subnets}}
    service = {} if authorized is None else {"StringEquals": {"ec2:AuthorizedService": authorized}}
    return [
        Statement(actions=list(actions), resources=resources, conditions=conditions)
        for actions, resources, conditions in (
            (DESCRIBE_NETWORK, ["*"], {}),
            (("ec2:CreateNetworkInterface",), [interfaces, *subnets, *groups], {}),
            (("ec2:DeleteNetworkInterface",), [interfaces], of_subnets),
            (permission, [interfaces], of_subnets | service),
        )
    ]


def acknowledge_network(policies: Construct) -> None:
    """Acknowledge the wildcard of `network_statements` for the policies below a construct."""
    reason = "A network interface has no id before EC2 creates it, but the policy names its subnets."
    acknowledge_wildcards(policies, {_interfaces(policies): reason})


def allow_network(
    role: iam.Role, network: Network, *, permission: Sequence[str], authorized: str | None = None
) -> None:
    """Allow a service to put its jobs into a VPC, by the role's own policy; see `network_statements`."""
    allow(role, *network_statements(role, network, permission=permission, authorized=authorized))
    acknowledge_network(role)


def allow_processing_network(role: iam.Role) -> None:
    """Allow SageMaker to put Processing jobs into a VPC, by the role's own policy.

    SageMaker validates the role when a job is created, and its guide forbids to name resources: "Don't scope in the
    policy with any conditions or resource filters. Otherwise, the validation checks that occur during the creation of
    the processing job fail" ("CreateProcessingJob API: Execution Role Permissions",
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html).
    """
    allow(role, Statement(actions=PROCESSING_NETWORK, resources=["*"]))
    reason = "SageMaker's guide requires these ec2 actions on every resource: jobs fail if the role limits them."
    _acknowledge_everything(role, reason)


def allow_function_network(role: iam.Role) -> None:
    """Allow Lambda to put a function into a VPC, by the role's own policy, and deny the same to the function's code.

    Lambda tries these actions when it creates the function, and its guide requires them on every resource. With the
    ARNs of the subnets, CreateFunction fails ("The provided execution role does not have permissions to call
    CreateNetworkInterface on EC2"; aws/serverless-application-model#1074). Requests of the function's code contain
    `lambda:SourceFunctionArn`, requests of Lambda do not ("Working with Lambda execution environment credentials" in
    Lambda's developer guide). The functions are named later, so the denial names every function of the account.
    """
    functions = stack_of(role).format_arn(
        service="lambda", resource="function", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    by_code = {"ArnLike": {"lambda:SourceFunctionArn": functions}}
    allow(
        role,
        Statement(actions=FUNCTION_NETWORK, resources=["*"]),
        Statement(actions=FUNCTION_NETWORK, resources=["*"], conditions=by_code, effect="Deny"),
    )
    reason = "Lambda's guide requires these ec2 actions on every resource. The role denies them to the functions' code."
    _acknowledge_everything(role, reason)


def _acknowledge_everything(role: iam.Role, reason: str) -> None:
    acknowledge_wildcards(role, {"*": reason})
    for policy in role.node.find_all():
        if isinstance(policy, iam.CfnManagedPolicy):
            skip_checkov(policy, {"CKV_AWS_111": reason})


def _selected(vpc: ec2.IVpc, selection: ec2.SubnetSelection | None) -> list[ec2.ISubnet]:
    subnets = _subnets(vpc, selection)
    for subnet in subnets:
        _reject_unresolved_list(subnet.subnet_id, f"the subnets of {vpc.node.path}")
    if not 1 <= len(subnets) <= MAX_SUBNETS:
        raise ConfigurationError(
            f"vpc_subnets of {vpc.node.path} select {len(subnets)} subnets: select 1 to {MAX_SUBNETS}, the number "
            "that AWS takes"
        )
    return subnets


def _reject_unresolved_list(id: str, what: str) -> None:
    """Reject the placeholder that stands for an unresolved list in the CDK (core/lib/private/encoding.ts)."""
    if id.startswith("#{Token["):
        raise ConfigurationError(
            f"{what} come from a list that is one unresolved token, so synth cannot read their number or their ids: "
            "pass each id as a separate text, such as [Fn.select(0, ids), Fn.select(1, ids)] for two"
        )


def _subnets(vpc: ec2.IVpc, selection: ec2.SubnetSelection | None) -> list[ec2.ISubnet]:
    if selection is None:
        return list(vpc.select_subnets().subnets)
    if selection.subnets is not None and selection.subnet_filters is None:
        return list(selection.subnets)  # the CDK would read their zones, which an imported subnet may lack
    found = vpc.select_subnets(
        availability_zones=selection.availability_zones,
        one_per_az=selection.one_per_az,
        subnet_filters=selection.subnet_filters,
        subnet_group_name=selection.subnet_group_name,
        subnets=selection.subnets,
        subnet_type=selection.subnet_type,
    )
    return list(found.subnets)


def _check_region(scope: Construct, vpc: ec2.IVpc) -> None:
    reason = f"instances and functions run in a VPC of their own region: use a VPC in {region_of(scope)}"
    require_own_region(scope, vpc, reason)


def _check_zones(vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
    zones = {zone for subnet in subnets if (zone := _zone(subnet)) is not None}
    known = all(_zone(subnet) is not None for subnet in subnets)
    if len(subnets) < 2 or (known and len(zones) < 2):
        found = f"{len(subnets)} subnets in one availability zone" if len(subnets) > 1 else "one subnet"
        raise ConfigurationError(
            f"vpc_subnets of {vpc.node.path} select {found}: SageMaker requires at least two subnets, in different "
            "availability zones, even for one instance; add subnets to the VPC, or select others"
        )


def _check_membership(
    vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], security_groups: Sequence[ec2.ISecurityGroup]
) -> None:
    """Reject subnets and security groups that are certainly in another VPC."""
    groups = [(group, group.node.default_child) for group in security_groups]
    made = [(subnet, subnet.node.default_child) for subnet in subnets if subnet.node.scope is not vpc]
    for each, resource in (*groups, *made):
        if isinstance(resource, ec2.CfnSecurityGroup | ec2.CfnSubnet) and _is_of_another_vpc(resource, vpc):
            what = "security group" if isinstance(resource, ec2.CfnSecurityGroup) else "subnet"
            raise ConfigurationError(
                f"the {what} {each.node.path} is in another VPC than {vpc.node.path}, but an instance has the subnets "
                f"and security groups of one VPC only: use a {what} of the VPC in vpc="
            )


def _is_of_another_vpc(resource: ec2.CfnSecurityGroup | ec2.CfnSubnet, vpc: ec2.IVpc) -> bool:
    """Whether a security group or a subnet is certainly in another VPC.

    It is certain if both VPC ids are literals or ids of VPCs of the app, and neither is the dummy value of a lookup.
    """
    stack = stack_of(resource)
    theirs, ours = stack.resolve(resource.vpc_id), stack.resolve(vpc.vpc_id)
    if theirs == ours or "vpc-12345" in (theirs, ours):
        return False
    vpcs = [each for each in resource.node.root.node.find_all() if isinstance(each, ec2.CfnVPC)]
    made = [stack.resolve(id) for each in vpcs for id in (each.ref, each.attr_vpc_id)]
    return all(isinstance(id, str) or id in made for id in (theirs, ours))


def _warn_of_public_subnets(
    scope: Construct, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], whose: str, harm: str, call: str
) -> None:
    public = {subnet.subnet_id for subnet in vpc.public_subnets}
    if any(subnet.subnet_id in public for subnet in subnets):
        Annotations.of(scope).add_warning_v2(
            PUBLIC_SUBNETS_WARNING,
            f"vpc_subnets of {vpc.node.path} select public subnets, where the network interfaces of {whose} have no "
            f"connection to the internet: without a VPC endpoint for S3, {harm}. Select private subnets, or call "
            f"{call} and acknowledge this",
        )


def _zone(subnet: ec2.ISubnet) -> str | None:
    """The availability zone as a template has it; None if the subnet was imported without one."""
    try:
        return json.dumps(stack_of(subnet).resolve(subnet.availability_zone))
    except RuntimeError:  # jsii's, of the getter
        return None


def _own_group(scope: Construct, vpc: ec2.IVpc, whose: str) -> ec2.SecurityGroup:
    description = group_description(f"cdk-triton: {whose} of {scope.node.path}")
    return ec2.SecurityGroup(scope, "SecurityGroup", vpc=vpc, description=description)


def _network(vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], groups: Sequence[ec2.ISecurityGroup]) -> Network:
    for group in groups:
        _reject_unresolved_list(group.security_group_id, f"the security_groups in {vpc.node.path}")
    return Network(
        vpc=vpc,
        subnets=[subnet.subnet_id for subnet in subnets],
        security_groups=[group.security_group_id for group in groups],
        connections=ec2.Connections(security_groups=list(groups)),
        established=[subnet.internet_connectivity_established for subnet in subnets],
    )


def _interfaces(scope: Construct) -> str:
    return _arn(scope, "network-interface", "*")


def _arn(scope: Construct, resource: str, name: str, *, account: str | None = None) -> str:
    return stack_of(scope).format_arn(service="ec2", resource=resource, resource_name=name, account=account)
