"""Models in a VPC: where they run, and what their role may do there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template
from cdk_nag import AwsSolutionsChecks

from cdk_triton import (
    CodeBuildGpuBuilder,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

PUBLIC = ec2.SubnetType.PUBLIC

MODEL, GROUP = "AWS::SageMaker::Model", "AWS::EC2::SecurityGroup"
VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "vpc_cidr_block": "10.0.0.0/16",
    "availability_zones": ["eu-west-1a", "eu-west-1b"],
    "private_subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "private_subnet_route_table_ids": ["rtb-a", "rtb-b"],
}

Make = Callable[..., Any]


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))


@pytest.fixture(name="vpc")
def _vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(stack, "Vpc", **VPC)  # type: ignore[arg-type]  # a mapping of several types


@pytest.fixture(name="make", params=["single", "multi"])
def _make(request: pytest.FixtureRequest, world: World, stack: cdk.Stack) -> Make:
    """Makes a model of either kind with what a test gives it."""

    def make(**given: Any) -> TritonModel | TritonMultiModel:
        if request.param == "single":
            return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, **given)
        ensembles = {"text": world.repository()}
        return TritonMultiModel(stack, "Model", ensembles=ensembles, platform=world.platform, **given)

    return make


def ec2_statements(world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> list[Any]:
    """The statements about EC2 of the model's policy: actions, resources and conditions."""
    found = []
    for statement in (
        statement
        for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
        for name, policy in world.resources(stack, kind).items()
        if name.startswith("Model")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ):
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        mine = sorted(action for action in actions if action.startswith("ec2:"))
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        if mine:
            found.append((mine, [flattened(resource) for resource in resources], statement.get("Condition")))
    return found


def test_a_model_is_in_no_vpc_of_the_users_unless_it_is_given_one(make: Make, world: World, stack: cdk.Stack) -> None:
    make()

    properties = world.only(stack, MODEL)["Properties"]
    assert not {"VpcConfig", "EnableNetworkIsolation"} & set(properties)
    assert "MultiModelConfig" not in properties["PrimaryContainer"]
    assert not world.resources(stack, GROUP)


def test_instances_are_in_the_private_subnets_behind_a_group_that_lets_nothing_in(
    make: Make, world: World, stack: cdk.Stack, vpc: ec2.IVpc
) -> None:
    make(vpc=vpc)

    ((group, made),) = world.resources(stack, GROUP).items()
    assert world.only(stack, MODEL)["Properties"]["VpcConfig"] == {
        "Subnets": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
    }
    assert "SecurityGroupIngress" not in made["Properties"]
    assert not world.resources(stack, "AWS::EC2::SecurityGroupIngress")


def test_subnets_and_groups_are_those_that_were_given(world: World, stack: cdk.Stack, make: Make) -> None:
    vpc = ec2.Vpc(stack, "Own", max_azs=3, nat_gateways=0)
    groups = [ec2.SecurityGroup.from_security_group_id(stack, name, f"sg-{name}") for name in ("one", "two")]
    make(vpc=vpc, vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC), security_groups=groups)

    config = world.only(stack, MODEL)["Properties"]["VpcConfig"]
    assert {subnet["Ref"][:15] for subnet in config["Subnets"]} == {"OwnPublicSubnet"}
    assert config["SecurityGroupIds"] == ["sg-one", "sg-two"]
    assert not world.resources(stack, GROUP)


def test_the_role_may_put_interfaces_into_these_subnets_and_groups_only(
    make: Make, world: World, stack: cdk.Stack, vpc: ec2.IVpc, flattened: Callable[[Any], str]
) -> None:
    make(vpc=vpc, security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-a")])

    arn = "arn:aws:ec2:eu-west-1:111122223333:"
    subnets = [f"{arn}subnet/subnet-0123456789abcdef0", f"{arn}subnet/subnet-0123456789abcdef1"]
    statements = ec2_statements(world, stack, flattened)
    assert (
        ["ec2:CreateNetworkInterface"],
        [f"{arn}network-interface/*", f"{arn}security-group/sg-a", *subnets],
        None,
    ) in [(actions, sorted(resources), condition) for actions, resources, condition in statements]
    bound = [
        action
        for actions, resources, condition in statements
        if condition == {"ArnEquals": {"ec2:Subnet": subnets}} and resources == [f"{arn}network-interface/*"]
        for action in actions
    ]
    assert sorted(bound) == [
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteNetworkInterfacePermission",
    ]
    described = [actions for actions, resources, _ in statements if resources == ["*"]]
    assert described == [
        [
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ]
    ]
    assert sum(len(actions) for actions, _, _ in statements) == 9


@pytest.mark.parametrize("own_role", [True, False])
def test_in_other_subnets_the_role_keeps_what_it_may_do_in_these_until_the_endpoint_is_updated(
    world: World, own_role: bool
) -> None:
    """CloudFormation makes new resources first and removes old ones last; what it changes, it changes at once."""

    def policy(app: str, subnets: list[str]) -> str:
        stack = cdk.Stack(world.app(app), "Stack")
        vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", **{**VPC, "private_subnet_ids": subnets})  # type: ignore[arg-type]
        role = None if own_role else iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc, role=role)
        kind = "AWS::IAM::ManagedPolicy" if own_role else "AWS::IAM::Policy"
        (name,) = (name for name in world.resources(stack, kind) if name.startswith("Model"))
        return name

    before = policy("before", ["subnet-a", "subnet-b"])
    assert policy("again", ["subnet-a", "subnet-b"]) == before
    assert policy("after", ["subnet-a", "subnet-c"]) != before


def test_the_subnets_of_a_shared_vpc_are_its_owners(world: World, flattened: Callable[[Any], str]) -> None:
    owner, key = "444455556666", "vpc-provider:account=111122223333:filter.vpc-id=vpc-a:region=eu-west-1"
    subnets = [
        {"subnetId": f"subnet-{zone}", "cidr": f"10.0.{n}.0/24", "availabilityZone": f"eu-west-1{zone}"}
        | {"routeTableId": f"rtb-{zone}"}
        for n, zone in enumerate("ab")
    ]
    context: dict[str, Any] = {
        f"{key}:returnAsymmetricSubnets=true": {
            "vpcId": "vpc-a",
            "ownerAccountId": owner,
            "availabilityZones": [],
            "subnetGroups": [{"name": "Private", "type": "Private", "subnets": subnets}],
        }
    }
    env = cdk.Environment(account="111122223333", region="eu-west-1")
    stack = cdk.Stack(world.app(**context), "Stack", env=env)
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-a")
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)

    resources = {arn for _, arns, _ in ec2_statements(world, stack, flattened) for arn in arns if ":subnet/" in arn}
    assert resources == {f"arn:aws:ec2:eu-west-1:{owner}:subnet/subnet-{zone}" for zone in "ab"}


def test_the_model_waits_for_the_way_out_of_its_subnets(make: Make, world: World, stack: cdk.Stack) -> None:
    make(vpc=ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=1))

    waits = world.only(stack, MODEL)["DependsOn"]
    routes = [name for name in waits if re.match("OwnPrivateSubnet[12]DefaultRoute", name)]
    assert len(routes) == 2


def test_containers_can_be_cut_off_from_every_network(make: Make, world: World, stack: cdk.Stack) -> None:
    make(network_isolation=True)

    assert world.only(stack, MODEL)["Properties"]["EnableNetworkIsolation"] is True


def test_a_fleet_can_do_without_its_cache(world: World, stack: cdk.Stack) -> None:
    ensembles = {"text": world.repository()}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform, model_cache=False)

    container = world.only(stack, MODEL)["Properties"]["PrimaryContainer"]
    assert container["MultiModelConfig"] == {"ModelCacheSetting": "Disabled"}


PUBLIC_SUBNETS = Match.string_like_regexp(r"\[ack: cdk-triton:PublicSubnets\]")


def test_public_subnets_lead_nowhere_and_that_is_said(messages: Messages, make: Make, stack: cdk.Stack) -> None:
    make(
        vpc=ec2.Vpc(
            stack, "Own", max_azs=2, subnet_configuration=[ec2.SubnetConfiguration(name="P", subnet_type=PUBLIC)]
        )
    )

    (warning,) = Annotations.from_stack(stack).find_warning("/Stack/Model", PUBLIC_SUBNETS)
    messages.record("cdk-triton:PublicSubnets", str(warning.entry.data))


def test_private_subnets_are_no_matter(make: Make, stack: cdk.Stack) -> None:
    make(vpc=ec2.Vpc(stack, "Own", max_azs=2))

    Annotations.from_stack(stack).has_no_warning("*", PUBLIC_SUBNETS)


def test_others_can_let_the_instances_in(make: Make, world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    model = make(vpc=vpc)
    features = ec2.SecurityGroup(stack, "Features", vpc=vpc)
    features.connections.allow_from(model, ec2.Port.tcp(6379))

    (rule,) = world.resources(stack, "AWS::EC2::SecurityGroupIngress").values()
    assert rule["Properties"]["SourceSecurityGroupId"]["Fn::GetAtt"][0].startswith("ModelSecurityGroup")
    assert not Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("Egress"))


def test_what_is_in_no_vpc_has_no_connections(messages: Messages, make: Make) -> None:
    model = make()
    with messages.raises(ConfigurationError):
        _ = model.connections


class TestIsRefused:
    def test_a_subnet_or_group_without_its_vpc(self, messages: Messages, make: Make, stack: cdk.Stack) -> None:
        group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-a")
        with messages.raises(ConfigurationError):
            make(security_groups=[group])

    @pytest.mark.parametrize("given", [[], {"subnet_type": ec2.SubnetType.PUBLIC}], ids=["a list", "a dict"])
    def test_a_selection_that_is_none(self, messages: Messages, make: Make, vpc: ec2.IVpc, given: object) -> None:
        with messages.raises(ConfigurationError):
            make(vpc=vpc, vpc_subnets=given)

    @pytest.mark.parametrize("builder", [CodeBuildGpuBuilder, SageMakerProcessingBuilder])
    def test_a_list_of_subnets_for_builds(
        self, messages: Messages, vpc: ec2.IVpc, builder: Callable[..., object]
    ) -> None:
        with messages.raises(ConfigurationError):
            builder(vpc=vpc, vpc_subnets=vpc.private_subnets)

    def test_no_subnet_for_builds(self, messages: Messages, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        builder = SageMakerProcessingBuilder(vpc=vpc, vpc_subnets=ec2.SubnetSelection(subnets=[]))
        with messages.raises(ConfigurationError):
            TritonArtifactStore(stack, "Store", builders=[builder])

    def test_a_single_availability_zone(self, messages: Messages, make: Make, vpc: ec2.IVpc) -> None:
        selection = ec2.SubnetSelection(availability_zones=["eu-west-1a"])
        with messages.raises(ConfigurationError):
            make(vpc=vpc, vpc_subnets=selection)

    def test_two_subnets_of_one_availability_zone(self, messages: Messages, make: Make, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc.from_vpc_attributes(
            stack,
            "One",
            vpc_id="vpc-a",
            availability_zones=["eu-west-1a"],
            private_subnet_ids=["subnet-a", "subnet-b"],
            private_subnet_names=["One", "Two"],
        )
        with messages.raises(ConfigurationError):
            make(vpc=vpc)

    @pytest.mark.parametrize("count", [0, 6])
    def test_a_number_of_security_groups_that_sagemaker_does_not_take(
        self, messages: Messages, make: Make, stack: cdk.Stack, vpc: ec2.IVpc, count: int
    ) -> None:
        groups = [ec2.SecurityGroup.from_security_group_id(stack, f"G{n}", f"sg-{n}") for n in range(count)]
        with messages.raises(ConfigurationError):
            make(vpc=vpc, security_groups=groups)

    def test_more_subnets_than_sagemaker_takes(self, messages: Messages, make: Make, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc.from_vpc_attributes(
            stack,
            "Many",
            vpc_id="vpc-a",
            availability_zones=["eu-west-1a"],
            private_subnet_ids=[f"subnet-{n}" for n in range(17)],
            private_subnet_names=[f"Group{n}" for n in range(17)],
        )
        subnets = [
            ec2.Subnet.from_subnet_attributes(stack, f"S{n}", subnet_id=f"subnet-{n}", availability_zone=f"z{n % 2}")
            for n in range(17)
        ]
        with messages.raises(ConfigurationError):
            make(vpc=vpc, vpc_subnets=ec2.SubnetSelection(subnets=subnets))

    def test_but_not_subnets_whose_zones_nobody_knows(self, make: Make, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        subnets = [ec2.Subnet.from_subnet_id(stack, f"S{n}", f"subnet-{n}") for n in range(2)]

        make(vpc=vpc, vpc_subnets=ec2.SubnetSelection(subnets=subnets))


def test_the_checks_of_cdk_nag_and_of_cloudformation_find_nothing(world: World) -> None:
    app = world.app(validated=True)
    env = cdk.Environment(account="111122223333", region="eu-west-1")
    stack = cdk.Stack(app, "Stack", env=env)
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", **VPC)  # type: ignore[arg-type]  # a mapping of several types
    TritonMultiModel(
        stack,
        "Fleet",
        ensembles={"text": world.repository()},
        platform=world.platform,
        vpc=vpc,
        network_isolation=True,
        model_cache=False,
    )

    report = AwsSolutionsChecks().validate_scope(stack)

    found = [(v.rule_name, c.construct_path) for v in report.violations or [] for c in v.violating_resources]
    assert not [finding for finding in found if "/Fleet/" in str(finding[1])]
    Template.from_stack(stack)  # CDK's validation of templates raises
