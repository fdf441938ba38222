"""The way out of a VPC without internet: who is warned that there is none, and what is made after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match
from tests.hosting.access.vpcs import IRELAND, VPC, app, isolated, stack, vpc

from cdk_triton import (
    CodeBuildGpuBuilder,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    add_vpc_endpoints,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

__all__ = ["app", "isolated", "stack", "vpc"]

MODEL, ENDPOINT = "AWS::SageMaker::Model", "AWS::EC2::VPCEndpoint"
ISOLATED, EGRESS = ec2.SubnetType.PRIVATE_ISOLATED, ec2.SubnetType.PRIVATE_WITH_EGRESS
IN_ISOLATED = ec2.SubnetSelection(subnet_type=ISOLATED)
S3 = ec2.GatewayVpcEndpointAwsService.S3
ECR = ec2.InterfaceVpcEndpointAwsService.ECR
ISOLATED_VPC = {name.replace("private", "isolated"): value for name, value in VPC.items()}

Make = Callable[..., TritonModel | TritonMultiModel]


@pytest.fixture(name="make", params=["single", "multi"])
def _make(request: pytest.FixtureRequest, world: World, stack: cdk.Stack) -> Make:
    """Makes a model of either kind in a VPC."""

    def make(vpc: ec2.IVpc, **given: Any) -> TritonModel | TritonMultiModel:
        if request.param == "single":
            return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc, **given)
        ensembles = {"text": world.repository()}
        return TritonMultiModel(stack, "Model", ensembles=ensembles, platform=world.platform, vpc=vpc, **given)

    return make


@pytest.fixture(name="model")
def _model(world: World, stack: cdk.Stack) -> Callable[[ec2.IVpc], TritonModel]:
    """Makes a model in a VPC, where its kind does not matter."""

    def model(vpc: ec2.IVpc) -> TritonModel:
        return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)

    return model


def exported(stack: cdk.Stack, id: str) -> ec2.IVpc:
    """An isolated VPC that another app exports, by a token of its own."""
    known: Any = ISOLATED_VPC | {"vpc_id": cdk.Fn.import_value("vpc")}
    return ec2.Vpc.from_vpc_attributes(stack, id, **known)


def scaled_endpoint(world: World, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    """An endpoint that is scaled, of a store whose functions run in a VPC."""
    store = TritonArtifactStore(stack, "Store", vpc=vpc, vpc_subnets=IN_ISOLATED)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)


def said(stack: cdk.Stack, path: str = "*") -> list[str]:
    """The warnings about the way out."""
    pattern = Match.string_like_regexp(r"\[ack: cdk-triton:NoWayOut\]")
    return [str(each.entry.data) for each in Annotations.from_stack(stack).find_warning(path, pattern)]


class TestThatThereIsNoWayOutIsSaid:
    def test_of_a_vpc_of_the_app(self, messages: Messages, make: Make, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        make(isolated)

        (sentence,) = said(stack, "/Stack/Model")
        messages.record("cdk-triton:NoWayOut", sentence)
        assert "add_vpc_endpoints(vpc)" in sentence

    def test_of_a_vpc_whose_egress_nobody_made(self, make: Make, stack: cdk.Stack) -> None:
        private = ec2.SubnetConfiguration(name="Private", subnet_type=EGRESS)
        make(ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=0, subnet_configuration=[private]))

        assert said(stack, "/Stack/Model")

    @pytest.mark.parametrize("unknown", ["", "isolated_subnet_route_table_ids"])
    def test_of_isolated_subnets_of_an_imported_vpc(
        self, model: Callable[[ec2.IVpc], TritonModel], stack: cdk.Stack, unknown: str
    ) -> None:
        known: Any = {name: value for name, value in ISOLATED_VPC.items() if name != unknown}
        model(ec2.Vpc.from_vpc_attributes(stack, "Vpc", **known))

        assert said(stack, "/Stack/Model")

    def test_of_isolated_subnets_beside_others(self, make: Make, stack: cdk.Stack) -> None:
        subnets = [
            ec2.SubnetConfiguration(name=kind.name, subnet_type=kind) for kind in (ec2.SubnetType.PUBLIC, EGRESS)
        ]
        subnets.append(ec2.SubnetConfiguration(name="Isolated", subnet_type=ISOLATED))
        vpc = ec2.Vpc(stack, "Own", max_azs=2, subnet_configuration=subnets)
        make(vpc, vpc_subnets=ec2.SubnetSelection(subnet_type=ISOLATED))

        assert said(stack, "/Stack/Model")

    def test_with_what_lacks(self, messages: Messages, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(vpc=isolated)])
        isolated.add_gateway_endpoint("S3", service=S3)

        (sentence,) = said(stack)
        messages.record("cdk-triton:NoWayOut", sentence)
        assert "ecr.api, ecr.dkr" in sentence
        assert "add_vpc_endpoints(vpc, exclude=['s3'])" in sentence

    def test_although_a_namesake_in_another_stack_has_them(
        self, model: Callable[[ec2.IVpc], TritonModel], app: cdk.App, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        """Their templates say the same of two VPCs."""
        model(isolated)
        add_vpc_endpoints(ec2.Vpc(cdk.Stack(app, "Other", env=IRELAND), "Own", max_azs=2, nat_gateways=0))

        assert said(stack)

    def test_although_the_namesake_of_an_export_has_them(
        self, model: Callable[[ec2.IVpc], TritonModel], app: cdk.App, stack: cdk.Stack
    ) -> None:
        model(exported(stack, "Vpc"))
        elsewhere = cdk.Environment(account="111122223333", region="us-east-1")
        add_vpc_endpoints(exported(cdk.Stack(app, "Other", env=elsewhere), "Vpc"), subnets=IN_ISOLATED)

        assert said(stack)

    def test_although_another_vpc_has_them(
        self, model: Callable[[ec2.IVpc], TritonModel], stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        model(isolated)
        add_vpc_endpoints(ec2.Vpc(stack, "Other", max_azs=2, nat_gateways=0))

        assert said(stack)

    def test_unless_it_is_acknowledged(
        self, model: Callable[[ec2.IVpc], TritonModel], stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        cdk.Annotations.of(model(isolated)).acknowledge_warning("cdk-triton:NoWayOut", "routed by another team")

        assert not said(stack)

    def test_of_builds(self, messages: Messages, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        builders = [CodeBuildGpuBuilder(vpc=isolated), SageMakerProcessingBuilder(vpc=isolated)]
        TritonArtifactStore(stack, "Store", builders=builders)

        for path in ("/Stack/Store/CodeBuild", "/Stack/Store/Processing"):
            (sentence,) = said(stack, path)
            messages.record("cdk-triton:NoWayOut", sentence)
            assert "s3, ecr.api, ecr.dkr" in sentence

    def test_of_the_wait_for_a_scaled_endpoint(
        self, messages: Messages, world: World, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        scaled_endpoint(world, stack, isolated)
        for service in ("S3", "DYNAMODB"):
            isolated.add_gateway_endpoint(service, service=getattr(ec2.GatewayVpcEndpointAwsService, service))
        isolated.add_interface_endpoint("States", service=ec2.InterfaceVpcEndpointAwsService.STEP_FUNCTIONS)

        (sentence,) = said(stack)
        messages.record("cdk-triton:NoWayOut", sentence)
        assert "cloudformation, sagemaker.api" in sentence


class TestNothingIsSaid:
    def test_with_a_nat_gateway(self, make: Make, stack: cdk.Stack) -> None:
        make(ec2.Vpc(stack, "Own", max_azs=2))

        assert not said(stack)

    def test_of_private_subnets_of_an_imported_vpc(
        self, model: Callable[[ec2.IVpc], TritonModel], stack: cdk.Stack, vpc: ec2.IVpc
    ) -> None:
        model(vpc)

        assert not said(stack)

    def test_where_the_endpoints_come_after_the_model(self, make: Make, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        make(isolated)
        add_vpc_endpoints(isolated)

        assert not said(stack)

    def test_where_the_endpoints_are_made_by_hand(
        self, model: Callable[[ec2.IVpc], TritonModel], app: cdk.App, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        model(isolated)
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(vpc=isolated)])
        isolated.add_gateway_endpoint("S3", service=S3)
        ec2.InterfaceVpcEndpoint(stack, "Ecr", vpc=isolated, service=ECR)
        ec2.CfnVPCEndpoint(
            cdk.Stack(app, "Other", env=IRELAND),
            "Docker",
            vpc_id=isolated.vpc_id,
            service_name=f"com.amazonaws.{cdk.Aws.REGION}.ecr.dkr",
        )

        assert not said(stack)

    def test_of_models_with_the_gateway_alone(self, make: Make, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        make(isolated)
        isolated.add_gateway_endpoint("S3", service=S3)

        assert not said(stack)

    @pytest.mark.parametrize("same", [True, False])
    def test_where_another_import_has_the_endpoints(
        self, model: Callable[[ec2.IVpc], TritonModel], app: cdk.App, stack: cdk.Stack, same: bool
    ) -> None:
        model(exported(stack, "Vpc"))
        other = stack if same else cdk.Stack(app, "Other", env=IRELAND)
        add_vpc_endpoints(exported(other, "Again"), subnets=IN_ISOLATED)

        assert not said(stack)

    def test_where_the_region_is_not_known(self, world: World) -> None:
        stack = cdk.Stack(world.app(), "Stack")
        vpc = ec2.Vpc(stack, "Own", max_azs=2, nat_gateways=0)
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)
        add_vpc_endpoints(vpc)

        assert not said(stack)

    @pytest.mark.parametrize(
        "route",
        [
            {"destination_cidr_block": "0.0.0.0/0", "transit_gateway_id": "tgw-0123456789abcdef0"},
            {"destination_ipv6_cidr_block": "::/0", "egress_only_internet_gateway_id": "eigw-0123456789abcdef0"},
        ],
    )
    def test_where_a_route_leads_elsewhere(
        self,
        model: Callable[[ec2.IVpc], TritonModel],
        stack: cdk.Stack,
        isolated: ec2.Vpc,
        route: dict[str, str],
    ) -> None:
        model(isolated)
        for number, subnet in enumerate(isolated.isolated_subnets):
            ec2.CfnRoute(stack, f"Route{number}", route_table_id=subnet.route_table.route_table_id, **route)

        assert not said(stack)

    def test_of_builds_with_endpoints(self, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(vpc=isolated)])
        add_vpc_endpoints(isolated)

        assert not said(stack)

    def test_of_no_wait_with_the_endpoints(self, world: World, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        scaled_endpoint(world, stack, isolated)
        add_vpc_endpoints(isolated, store_functions=True)

        assert not said(stack)


class TestWhatRunsThereWaits:
    @staticmethod
    def awaited(world: World, stack: cdk.Stack, resource: dict[str, Any]) -> set[str]:
        """The services whose VPC endpoints it is made after, from their construct ids."""
        made = world.resources(stack, ENDPOINT)
        names = (name for name in resource["DependsOn"] if name in made)
        return {re.sub("^(Own|Vpc)|[0-9A-F]{8}$", "", name) for name in names}

    @staticmethod
    def starter(world: World, stack: cdk.Stack) -> dict[str, Any]:
        """The function that starts builds."""
        functions = world.resources(stack, "AWS::Lambda::Function").values()
        (found,) = (each for each in functions if each["Properties"]["Handler"] == "artifacts.is_complete")
        return dict(found)

    def test_a_wait_before_the_deletion_of_a_scaled_endpoint(
        self, world: World, stack: cdk.Stack, isolated: ec2.Vpc
    ) -> None:
        """So that CloudFormation keeps the VPC endpoints until the wait has run."""
        scaled_endpoint(world, stack, isolated)
        add_vpc_endpoints(isolated, store_functions=True)

        waits = world.resources(stack, "Custom::TritonEndpointWait")
        (deletion,) = (each for name, each in waits.items() if "BeforeDeletion" in name)
        assert self.awaited(world, stack, deletion) == {"TritonCloudformation", "TritonSagemakerApi"}

    @pytest.mark.parametrize("first", [True, False])
    def test_a_model(self, make: Make, world: World, stack: cdk.Stack, isolated: ec2.Vpc, first: bool) -> None:
        if first:
            add_vpc_endpoints(isolated)
        make(isolated)
        if not first:
            add_vpc_endpoints(isolated)

        assert self.awaited(world, stack, world.only(stack, MODEL)) == {"TritonS3"}

    def test_a_model_in_an_imported_vpc(
        self, model: Callable[[ec2.IVpc], TritonModel], world: World, stack: cdk.Stack, vpc: ec2.IVpc
    ) -> None:
        model(vpc)
        vpc.add_gateway_endpoint("S3", service=S3)

        assert self.awaited(world, stack, world.only(stack, MODEL)) == {"S3"}

    def test_a_model_for_those_of_another_import(
        self, model: Callable[[ec2.IVpc], TritonModel], world: World, stack: cdk.Stack
    ) -> None:
        model(exported(stack, "Vpc"))
        exported(stack, "Again").add_gateway_endpoint("S3", service=S3)

        assert self.awaited(world, stack, world.only(stack, MODEL)) == {"AgainS3"}

    @pytest.mark.parametrize("service", ["logs", "monitoring", "sts", "sagemaker.api", "sagemaker.runtime", "lambda"])
    def test_but_no_model_for_those_of_other_services(
        self, make: Make, world: World, stack: cdk.Stack, isolated: ec2.Vpc, service: str
    ) -> None:
        """Their policies may name the SageMaker endpoint."""
        make(isolated)
        isolated.add_gateway_endpoint("S3", service=S3)
        isolated.add_interface_endpoint("Another", service=ec2.InterfaceVpcEndpointAwsService(service))

        assert self.awaited(world, stack, world.only(stack, MODEL)) == {"S3"}

    def test_but_no_stack_for_another(self, world: World, app: cdk.App, stack: cdk.Stack, vpc: ec2.IVpc) -> None:
        """The other one may need something of this one."""
        add_vpc_endpoints(vpc)
        other = cdk.Stack(app, "Other", env=IRELAND)
        model = TritonModel(other, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)
        features = ec2.SecurityGroup(stack, "Features", vpc=vpc)
        features.connections.allow_from(model, ec2.Port.tcp(6379))

        assert world.only(other, MODEL)["Properties"]["VpcConfig"]
        assert other in stack.dependencies

    def test_what_starts_builds(self, world: World, stack: cdk.Stack, isolated: ec2.Vpc) -> None:
        TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder(vpc=isolated)])
        add_vpc_endpoints(isolated, exclude=["sts", "monitoring"])

        assert self.awaited(world, stack, self.starter(world, stack)) == {"TritonS3", "TritonEcrApi", "TritonEcrDkr"}

    def test_what_starts_builds_for_a_nat_gateway(self, world: World, stack: cdk.Stack) -> None:
        vpc = ec2.Vpc(stack, "Own", max_azs=2)
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(vpc=vpc)])

        waits = self.starter(world, stack)["DependsOn"]
        routes = [name for name in waits if re.match("OwnPrivateSubnet[12]DefaultRoute", name)]
        assert len(routes) == 2
