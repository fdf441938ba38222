"""VPCs with their subnets, routes, gateways, security groups and VPC endpoints. No packet flows through them."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import document, missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)


class _NetworkType(ResourceType):
    """Most of these types cannot change in place, except for their tags."""

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        physical = self._create(context, context.client("ec2"), properties)
        self._tag(context, physical, properties)
        self._configure(context.client("ec2"), physical, properties, {})
        return physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        self._tag(context, physical, properties)
        self._configure(context.client("ec2"), physical, properties, previous)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            self._delete(context.client("ec2"), physical, properties)

    @abstractmethod
    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource: ...
    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        """Set what can change in place; called after the creation too."""

    @abstractmethod
    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None: ...
    def _tag(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        if "Tags" in self.modelled and (tags := context.tag_list(properties)):
            resource = physical.attributes.get("AllocationId", physical.id)  # an address is tagged by its allocation
            context.client("ec2").create_tags(Resources=[resource], Tags=tags)


@register
class Vpc(_NetworkType):
    """AWS::EC2::VPC."""

    type_name = "AWS::EC2::VPC"
    note = (
        "A VPC with its default security group and its settings for DNS. Nothing is connected to the VPC. With the "
        "feature flags of a new project, pass `restrict_default_security_group=False`, because the CDK otherwise adds "
        "a function in Node.js."
    )
    modelled = frozenset({"CidrBlock", "EnableDnsHostnames", "EnableDnsSupport", "InstanceTenancy", "Tags"})
    attributes = frozenset({"CidrBlock", "DefaultNetworkAcl", "DefaultSecurityGroup", "VpcId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        vpc = ec2.create_vpc(**picked(properties, "CidrBlock", "InstanceTenancy"))["Vpc"]["VpcId"]
        own = [{"Name": "vpc-id", "Values": [vpc]}]
        (group,) = ec2.describe_security_groups(Filters=own)["SecurityGroups"]
        (acl,) = ec2.describe_network_acls(Filters=own)["NetworkAcls"]
        return PhysicalResource(
            vpc,
            {
                "CidrBlock": properties.get("CidrBlock"),
                "DefaultNetworkAcl": acl["NetworkAclId"],
                "DefaultSecurityGroup": group["GroupId"],
                "VpcId": vpc,
            },
        )

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        for name, value in picked(properties, "EnableDnsHostnames", "EnableDnsSupport").items():
            ec2.modify_vpc_attribute(VpcId=physical.id, **{name: {"Value": value}})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_vpc(VpcId=physical.id)


@register
class Subnet(_NetworkType):
    """AWS::EC2::Subnet."""

    type_name = "AWS::EC2::Subnet"
    note = "A subnet in its availability zone. Its addresses are not counted."
    modelled = frozenset({"AvailabilityZone", "CidrBlock", "MapPublicIpOnLaunch", "Tags", "VpcId"})
    attributes = frozenset({"AvailabilityZone", "CidrBlock", "NetworkAclAssociationId", "SubnetId", "VpcId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        made = ec2.create_subnet(**picked(properties, "AvailabilityZone", "CidrBlock", "VpcId"))["Subnet"]
        subnet = made["SubnetId"]
        in_subnet = [{"Name": "association.subnet-id", "Values": [subnet]}]
        (acl,) = ec2.describe_network_acls(Filters=in_subnet)["NetworkAcls"]
        associations = {each["SubnetId"]: each["NetworkAclAssociationId"] for each in acl["Associations"]}
        attributes = {**picked(made, "AvailabilityZone", "CidrBlock", "VpcId"), "SubnetId": subnet}
        return PhysicalResource(subnet, attributes | {"NetworkAclAssociationId": associations[subnet]})

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        public = properties.get("MapPublicIpOnLaunch", False)
        ec2.modify_subnet_attribute(SubnetId=physical.id, MapPublicIpOnLaunch={"Value": public})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_subnet(SubnetId=physical.id)


@register
class RouteTable(_NetworkType):
    """AWS::EC2::RouteTable."""

    type_name = "AWS::EC2::RouteTable"
    note = "A table of routes that no packet uses."
    modelled = frozenset({"Tags", "VpcId"})
    attributes = frozenset({"RouteTableId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        table = ec2.create_route_table(VpcId=properties["VpcId"])["RouteTable"]["RouteTableId"]
        return PhysicalResource(table, {"RouteTableId": table})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_route_table(RouteTableId=physical.id)


@register
class SubnetRouteTableAssociation(_NetworkType):
    """AWS::EC2::SubnetRouteTableAssociation."""

    type_name = "AWS::EC2::SubnetRouteTableAssociation"
    note = "The association of a route table with a subnet."
    modelled = frozenset({"RouteTableId", "SubnetId"})
    attributes = frozenset({"Id"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        association = ec2.associate_route_table(**properties)["AssociationId"]
        return PhysicalResource(association, {"Id": association})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.disassociate_route_table(AssociationId=physical.id)


@register
class Route(_NetworkType):
    """AWS::EC2::Route."""

    type_name = "AWS::EC2::Route"
    note = "A route to a gateway."
    modelled = frozenset({"DestinationCidrBlock", "GatewayId", "NatGatewayId", "RouteTableId"})
    attributes = frozenset({"CidrBlock"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        ec2.create_route(**properties)
        destination = properties["DestinationCidrBlock"]
        return PhysicalResource(f"{properties['RouteTableId']}|{destination}", {"CidrBlock": destination})

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        if previous and properties != previous:
            ec2.replace_route(**properties)

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_route(**picked(properties, "DestinationCidrBlock", "RouteTableId"))


@register
class InternetGateway(_NetworkType):
    """AWS::EC2::InternetGateway."""

    type_name = "AWS::EC2::InternetGateway"
    note = "A gateway without a connection to the internet."
    modelled = frozenset({"Tags"})
    attributes = frozenset({"InternetGatewayId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        return PhysicalResource(gateway, {"InternetGatewayId": gateway})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_internet_gateway(InternetGatewayId=physical.id)


@register
class VpcGatewayAttachment(_NetworkType):
    """AWS::EC2::VPCGatewayAttachment."""

    type_name = "AWS::EC2::VPCGatewayAttachment"
    note = "The attachment of an internet gateway to a VPC."
    modelled = frozenset({"InternetGatewayId", "VpcId"})
    attributes = frozenset({"AttachmentType"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        ec2.attach_internet_gateway(**properties)
        return PhysicalResource(f"IGW|{properties['VpcId']}", {"AttachmentType": "IGW"})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.detach_internet_gateway(**properties)


@register
class Address(_NetworkType):
    """AWS::EC2::EIP."""

    type_name = "AWS::EC2::EIP"
    note = "An address that no program can reach."
    modelled = frozenset({"Domain", "Tags"})
    attributes = frozenset({"AllocationId", "PublicIp"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        made = ec2.allocate_address(**picked(properties, "Domain"))
        return PhysicalResource(made["PublicIp"], picked(made, "AllocationId", "PublicIp"))

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.release_address(AllocationId=physical.attributes["AllocationId"])


@register
class NatGateway(_NetworkType):
    """AWS::EC2::NatGateway."""

    type_name = "AWS::EC2::NatGateway"
    note = "A gateway in its subnet, with its address, but without a connection to the internet."
    modelled = frozenset({"AllocationId", "ConnectivityType", "SubnetId", "Tags"})
    attributes = frozenset({"NatGatewayId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        request = picked(properties, "AllocationId", "ConnectivityType", "SubnetId")
        gateway = ec2.create_nat_gateway(**request)["NatGateway"]["NatGatewayId"]
        return PhysicalResource(gateway, {"NatGatewayId": gateway})

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_nat_gateway(NatGatewayId=physical.id)


@register
class SecurityGroup(_NetworkType):
    """AWS::EC2::SecurityGroup."""

    type_name = "AWS::EC2::SecurityGroup"
    note = "A security group with its rules, which have no effect."
    modelled = frozenset(
        {"GroupDescription", "GroupName", "SecurityGroupEgress", "SecurityGroupIngress", "Tags", "VpcId"}
    )
    attributes = frozenset({"GroupId", "GroupName", "Id", "VpcId"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        name = properties.get("GroupName") or context.generated_name(255)
        group = ec2.create_security_group(
            GroupName=name, Description=properties["GroupDescription"], **picked(properties, "VpcId")
        )["GroupId"]
        return PhysicalResource(
            group, {"GroupId": group, "GroupName": name, "Id": group, "VpcId": properties.get("VpcId")}
        )

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        # Its own rules replace the one that lets everything out; without any, that one stays.
        for kind, before in (("Ingress", []), ("Egress", [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}])):
            old = previous.get(f"SecurityGroup{kind}", before)
            new = properties.get(f"SecurityGroup{kind}", before)
            for call, rules in (("revoke", old), ("authorize", new)):
                if rules and old != new:
                    change = getattr(ec2, f"{call}_security_group_{kind.lower()}")
                    change(GroupId=physical.id, IpPermissions=[_ip_permission(rule) for rule in rules])

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_security_group(GroupId=physical.id)


class _SecurityGroupRule(_NetworkType):
    """Only the description of a rule could change in place."""

    kind: str
    attributes = frozenset({"Id"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        authorize = getattr(ec2, f"authorize_security_group_{self.kind}")
        (rule,) = authorize(**self._request(properties))["SecurityGroupRules"]
        return PhysicalResource(rule["SecurityGroupRuleId"], {"Id": rule["SecurityGroupRuleId"]})

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        if previous and properties != previous:
            raise LocalError("the local AWS cannot change the description of a rule of a security group; keep it")

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        getattr(ec2, f"revoke_security_group_{self.kind}")(**self._request(properties))

    @staticmethod
    def _request(properties: Properties) -> dict[str, Any]:
        return {"GroupId": properties["GroupId"], "IpPermissions": [_ip_permission(properties)]}


@register
class SecurityGroupIngress(_SecurityGroupRule):
    """AWS::EC2::SecurityGroupIngress."""

    type_name = "AWS::EC2::SecurityGroupIngress"
    kind = "ingress"
    note = "A rule of a security group."
    modelled = frozenset(
        {"CidrIp", "Description", "FromPort", "GroupId", "IpProtocol", "SourceSecurityGroupId", "ToPort"}
    )


@register
class SecurityGroupEgress(_SecurityGroupRule):
    """AWS::EC2::SecurityGroupEgress."""

    type_name = "AWS::EC2::SecurityGroupEgress"
    kind = "egress"
    note = "A rule of a security group."
    modelled = frozenset(
        {"CidrIp", "Description", "DestinationSecurityGroupId", "FromPort", "GroupId", "IpProtocol", "ToPort"}
    )


@register
class VpcEndpoint(_NetworkType):
    """AWS::EC2::VPCEndpoint."""

    type_name = "AWS::EC2::VPCEndpoint"
    note = (
        "A VPC endpoint of a service. Programs reach the service without the VPC endpoint, except for functions while "
        "the local AWS has the [fault](#faults) `isolated-subnets`."
    )
    modelled = frozenset(
        {
            "PolicyDocument",
            "PrivateDnsEnabled",
            "RouteTableIds",
            "SecurityGroupIds",
            "ServiceName",
            "SubnetIds",
            "Tags",
            "VpcEndpointType",
            "VpcId",
        }
    )
    attributes = frozenset({"Id"})

    def _create(self, context: Context, ec2: Any, properties: Properties) -> PhysicalResource:
        request = picked(properties, *sorted(self.modelled - {"PolicyDocument", "Tags"}))
        if "PolicyDocument" in properties:
            request["PolicyDocument"] = document(properties["PolicyDocument"])
        endpoint = ec2.create_vpc_endpoint(**request)["VpcEndpoint"]["VpcEndpointId"]
        return PhysicalResource(endpoint, {"Id": endpoint})

    def _configure(self, ec2: Any, physical: PhysicalResource, properties: Properties, previous: Properties) -> None:
        if previous and {**properties, "Tags": None} != {**previous, "Tags": None}:
            raise LocalError("the local AWS cannot change a VPC endpoint in place; give it another id in your app")

    def _delete(self, ec2: Any, physical: PhysicalResource, properties: Properties) -> None:
        ec2.delete_vpc_endpoints(VpcEndpointIds=[physical.id])


@register
class FlowLog(ResourceType):
    """AWS::EC2::FlowLog."""

    type_name = "AWS::EC2::FlowLog"
    note = "The flow log is recorded without effect, because no packet flows through a VPC here."
    modelled = frozenset()
    recorded = frozenset(
        {
            "DeliverCrossAccountRole",
            "DeliverLogsPermissionArn",
            "DestinationOptions",
            "LogDestination",
            "LogDestinationType",
            "LogFormat",
            "LogGroupName",
            "MaxAggregationInterval",
            "ResourceId",
            "ResourceType",
            "TagFieldSpecifications",
            "Tags",
            "TrafficType",
        }
    )
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        """Make up an id."""
        flow_log = f"fl-{secrets.token_hex(9)[:17]}"
        return PhysicalResource(flow_log, {"Id": flow_log})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        """Nothing: only tags change in place."""
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        """Nothing: there is only the record."""


def _ip_permission(rule: Properties) -> dict[str, Any]:
    described = picked(rule, "Description")
    permission = picked(rule, "FromPort", "IpProtocol", "ToPort")
    if "CidrIp" in rule:
        permission["IpRanges"] = [{**picked(rule, "CidrIp"), **described}]
    for name in ("SourceSecurityGroupId", "DestinationSecurityGroupId"):
        if name in rule:
            permission["UserIdGroupPairs"] = [{"GroupId": rule[name], **described}]
    if not {"IpRanges", "UserIdGroupPairs"} & set(permission):
        raise LocalError(
            f"the local AWS supports rules of security groups with CidrIp or another security group, and not with "
            f"{', '.join(sorted(set(rule) - {'Description', 'FromPort', 'GroupId', 'IpProtocol', 'ToPort'}))}"
        )
    return permission
