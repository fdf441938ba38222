"""What a platform team lays over an app reaches every resource that this library makes, those of CDK's inside too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from constructs import IConstruct, IMixin
from tests.security.everything import add_everything

import cdk_triton
from cdk_triton import CodeBuildGpuBuilder, TritonArtifactStore, TritonModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hosting.conftest import World

WITHOUT_TAGS = {
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::IAM::ManagedPolicy",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy",
    "AWS::Scheduler::Schedule",
    "Custom::TritonArtifacts",
    "Custom::TritonEndpointWait",
}
"""Types that have no tags in CloudFormation."""

BOUNDARY = "arn:aws:iam::111122223333:policy/Boundary"


def resources(world: World, lay: Callable[[cdk.App], object], *, first: bool = True) -> dict[str, dict[str, Any]]:
    """The resources of all stacks, where something is laid over the app before or after they are made."""
    app = world.app()
    if first:
        lay(app)
    stacks = add_everything(world, app)
    if not first:
        lay(app)
    app.synth()
    return {
        f"{stack.node.id}/{name}": resource
        for stack in stacks
        for name, resource in Template.from_stack(stack).to_json()["Resources"].items()
    }


def of_type(found: dict[str, dict[str, Any]], kind: str) -> dict[str, Any]:
    return {name: resource["Properties"] for name, resource in found.items() if resource["Type"] == kind}


def test_an_aspect_visits_every_resource_and_its_changes_stand_in_the_template(world: World) -> None:
    visited: set[str] = set()

    @jsii.implements(cdk.IAspect)
    class Company:
        def visit(self, node: IConstruct) -> None:
            if isinstance(node, cdk.CfnResource):
                visited.add(f"{node.stack.node.id}/{node.stack.resolve(node.logical_id)}")
                node.add_metadata("Company", "seen")

    found = resources(world, lambda app: cdk.Aspects.of(app).add(Company()))

    assert visited == set(found)
    assert {name for name, resource in found.items() if resource["Metadata"]["Company"] == "seen"} == set(found)


def test_tags_reach_every_resource_that_takes_tags(world: World) -> None:
    found = resources(world, lambda app: cdk.Tags.of(app).add("team", "search"))

    untagged = {
        resource["Type"] for resource in found.values() if "search" not in str(resource["Properties"].get("Tags"))
    }
    assert untagged == WITHOUT_TAGS


def test_a_mixin_is_applied_to_every_resource(world: World) -> None:
    @jsii.implements(IMixin)
    class Company:
        def supports(self, construct: IConstruct) -> bool:
            return isinstance(construct, cdk.CfnResource)

        def apply_to(self, construct: IConstruct) -> None:
            assert isinstance(construct, cdk.CfnResource)
            construct.add_metadata("Company", "mixed in")

    found = resources(world, lambda app: cdk.Mixins.of(app).apply(Company()), first=False)

    assert {name for name, resource in found.items() if resource.get("Metadata", {}).get("Company")} == set(found)


@pytest.mark.parametrize("way", ["construct", "context"])
def test_a_permissions_boundary_is_set_on_every_role(world: World, way: str) -> None:
    def lay(app: cdk.App) -> None:
        if way == "construct":
            boundary = iam.ManagedPolicy.from_managed_policy_arn(app, "Boundary", BOUNDARY)
            iam.PermissionsBoundary.of(app).apply(boundary)
        else:
            app.node.set_context("@aws-cdk/core:permissionsBoundary", {"name": "Boundary"})

    roles = of_type(resources(world, lay), "AWS::IAM::Role")

    assert len(roles) >= 9
    for role in roles.values():
        assert "policy/Boundary" in str(role["PermissionsBoundary"])


def test_roles_that_exist_already_take_the_place_of_all(world: World) -> None:
    """CDK then makes no role and no policy, and writes a report of what they have to allow."""
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    paths = [
        *(f"Stack/Store/{name}" for name in ("ProvideRole", "IsCompleteRole", "WaiterRole", "CodeBuild/Role")),
        "Stack/Model/Role",
    ]
    names = {path: f"given-{number}" for number, path in enumerate(paths)}
    iam.Role.customize_roles(stack, use_precreated_roles=names)
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    app.synth()

    assert not [kind for kind in types(stack) if kind.startswith("AWS::IAM::")]
    report = json.loads((Path(app.outdir) / "iam-policy-report.json").read_text())
    assert {role["roleConstructPath"] for role in report["roles"]} == set(paths)
    assert all(role["managedPolicyStatements"] for role in report["roles"])


def types(stack: cdk.Stack) -> set[str]:
    return {resource["Type"] for resource in Template.from_stack(stack).to_json()["Resources"].values()}


def injector(of: Any, **injected: Any) -> Any:
    """A property injector for an L2 of CDK."""

    @jsii.implements(cdk.IPropertyInjector)
    class Injector:
        @property
        def construct_unique_id(self) -> str:
            return str(of.PROPERTY_INJECTION_ID)

        def inject(self, original_props: Any, *, scope: Any, id: str) -> Any:
            return {**original_props, **injected}

    return Injector()


@pytest.mark.parametrize(
    ("construct", "injected", "kind", "member", "expected"),
    [
        (s3.Bucket, {"transferAcceleration": True}, "AWS::S3::Bucket", "AccelerateConfiguration", True),
        (lambda_.Function, {"memorySize": 1769}, "AWS::Lambda::Function", "MemorySize", 1769),
        (logs.LogGroup, {"logGroupName": "company"}, "AWS::Logs::LogGroup", "LogGroupName", "company"),
        (iam.Role, {"path": "/company/"}, "AWS::IAM::Role", "Path", "/company/"),
        (iam.ManagedPolicy, {"path": "/company/"}, "AWS::IAM::ManagedPolicy", "Path", "/company/"),
        (ec2.SecurityGroup, {"securityGroupName": "company"}, "AWS::EC2::SecurityGroup", "GroupName", "company"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_property_injector_of_an_l2_inside_is_called(
    world: World, construct: Any, injected: dict[str, Any], kind: str, member: str, expected: Any
) -> None:
    found = of_type(
        resources(world, lambda app: cdk.PropertyInjectors.of(app).add(injector(construct, **injected))), kind
    )

    assert found
    for properties in found.values():
        assert member in properties
        assert expected is True or properties[member] == expected


def test_injectors_are_called_for_every_l2_inside(world: World) -> None:
    known = l2s(world, lambda app: None)
    called: set[tuple[str, str]] = set()

    def listen(app: cdk.App) -> None:
        cdk.PropertyInjectors.of(app).add(*(listener(name, called) for name in {name for name, _ in known}))

    assert l2s(world, listen) == known == called
    assert {"Role", "ManagedPolicy", "Bucket", "Function", "LogGroup", "Alarm", "Dashboard", "Topic", "Rule"} <= {
        name.rpartition(".")[2] for name, _ in known
    }


def l2s(world: World, lay: Callable[[cdk.App], None]) -> set[tuple[str, str]]:
    """The L2s of CDK that are made: their id for injectors, and their path."""
    app = world.app()
    lay(app)
    add_everything(world, app)
    found = {each.node.path: getattr(type(each), "PROPERTY_INJECTION_ID", None) for each in app.node.find_all()}
    return {(name, path) for path, name in found.items() if name is not None}


def listener(name: str, called: set[tuple[str, str]]) -> Any:
    """A property injector that notes for what it is called."""

    @jsii.implements(cdk.IPropertyInjector)
    class Listener:
        @property
        def construct_unique_id(self) -> str:
            return name

        def inject(self, original_props: Any, *, scope: Any, id: str) -> Any:
            called.add((name, f"{scope.node.path}/{id}"))
            return original_props

    return Listener()


def test_constructs_of_this_library_have_no_id_for_injectors(world: World) -> None:
    """CDK calls injectors for the classes of TypeScript only: subclass a construct, or wrap it, instead."""
    for name in ("TritonArtifactStore", "TritonModel", "TritonMultiModel", "TritonEndpoint"):
        assert not hasattr(getattr(cdk_triton, name), "PROPERTY_INJECTION_ID")
