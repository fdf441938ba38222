"""What a model's role may do, and who brings its archive, when a deployment changes either: both are replaced.

CloudFormation makes a resource with a new logical id before the endpoint is updated, and removes the old one after. A
resource that keeps its id would be narrowed before, and old instances, or those of a rollback, would be locked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam

from cdk_triton import ServingPlatform, TritonArtifactStore, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

Options = dict[str, Any]
Change = Callable[["World", cdk.Stack], Options]


def beside(stack: cdk.Stack, name: str) -> cdk.Stack:
    """Another stack of the app."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    return cdk.Stack(app, name)


def stored(stack: cdk.Stack, of: str) -> Options:
    """A store of another stack, whose construct has the same id there."""
    return {"store": TritonArtifactStore(beside(stack, of), "Store", builders=[])}


def pulled(repository: ecr.IRepository) -> Options:
    uri = f"{repository.repository_uri}@sha256:{'a' * 64}"
    return {"platform": ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge", image=uri)}


def mirrored(stack: cdk.Stack, repository: str) -> Options:
    return pulled(ecr.Repository.from_repository_name(stack, "Images", repository))


def in_app(stack: cdk.Stack, of: str) -> Options:
    """An image of a repository that a stack of the app makes; its construct has the same id there."""
    return pulled(ecr.Repository(beside(stack, of), "Images"))


def mine(stack: cdk.Stack) -> Options:
    return {"role": iam.Role(stack, "Mine", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))}


def within(stack: cdk.Stack, *subnets: str, groups: Sequence[str] = ("sg-a",)) -> Options:
    zones = [f"eu-west-1{letter}" for letter in "ab"]
    attributes = {"vpc_id": "vpc-a", "availability_zones": zones, "private_subnet_ids": list(subnets)}
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", **attributes)  # type: ignore[arg-type]  # of several types
    security_groups = [ec2.SecurityGroup.from_security_group_id(stack, group, group) for group in groups]
    return {"vpc": vpc, "security_groups": security_groups}


@pytest.fixture(name="deployed")
def _deployed(world: World) -> Callable[[Change], dict[str, str]]:
    """Synthesises the same model anew, with a change: which of its resources has which logical id."""
    number = iter(range(9))

    def synthesise(change: Change) -> dict[str, str]:
        stack = cdk.Stack(world.app(f"out{next(number)}"), "Stack")
        options: Options = {"platform": world.platform, **change(world, stack)}
        if "ensembles" in options:
            TritonMultiModel(stack, "Model", **options)
        else:
            TritonModel(stack, "Model", **{"repository": world.repository(), **options})
        return dict(found(world.template(stack)["Resources"]))

    return synthesise


def found(resources: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, resource in resources.items():
        if name.startswith("Model"):
            yield resource["Type"], name
            if resource["Type"] == "AWS::IAM::Policy":
                yield "name of the policy", resource["Properties"]["PolicyName"]


POLICY, INLINE, DELIVERY = "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "Custom::TritonArtifacts"


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        (
            lambda world, _: {"repository": world.repository("text")},
            lambda world, _: {"repository": world.repository("sentences")},
            {POLICY},
        ),
        (lambda _, stack: stored(stack, "Here"), lambda _, stack: stored(stack, "There"), {POLICY, DELIVERY}),
        (lambda *_: {}, lambda _, stack: stored(stack, "There"), {POLICY, DELIVERY}),
        (lambda _, stack: mirrored(stack, "ours"), lambda _, stack: mirrored(stack, "theirs"), {POLICY}),
        (lambda _, stack: in_app(stack, "Here"), lambda _, stack: in_app(stack, "There"), {POLICY}),
        (
            lambda _, stack: within(stack, "subnet-a", "subnet-b"),
            lambda _, stack: within(stack, "subnet-a", "subnet-c"),
            {POLICY},
        ),
        (
            lambda world, stack: {"repository": world.repository("text"), **mine(stack)},
            lambda world, stack: {"repository": world.repository("sentences"), **mine(stack)},
            {INLINE, "name of the policy"},  # by which a role knows it
        ),
    ],
    ids=[
        "renamed repository",
        "store of another stack",
        "store of the stack's own",
        "moved image",
        "moved image of the app",
        "other subnets",
        "role of the user's",
    ],
)
def test_what_would_be_narrowed_is_replaced(
    before: Change, after: Change, replaced: set[str], deployed: Callable[[Change], dict[str, str]]
) -> None:
    old, new = deployed(before), deployed(after)

    assert old.keys() == new.keys()
    assert {kind for kind in old if old[kind] != new[kind]} == replaced


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda *_: {}, lambda world, _: {"repository": world.repository(weights="2")}),
        (
            lambda *_: {},
            lambda *_: {"platform": ServingPlatform(release="25.09", instance_type="ml.g6.xlarge")},
        ),
        (
            lambda world, _: {"ensembles": {"text": world.repository()}},
            lambda world, _: {"ensembles": {"text": world.repository(), "added": world.repository("added")}},
        ),
        (
            lambda _, stack: within(stack, "subnet-a", "subnet-b", groups=("sg-a", "sg-b")),
            lambda _, stack: within(stack, "subnet-a", "subnet-b", groups=("sg-b", "sg-a")),
        ),
    ],
    ids=["other content", "other GPU", "added ensemble", "groups in another order"],
)
def test_what_is_not_narrowed_stays(
    before: Change, after: Change, deployed: Callable[[Change], dict[str, str]]
) -> None:
    assert deployed(before) == deployed(after)
