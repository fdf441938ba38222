"""Inline policies of roles that several stacks use: a role has one policy of a name, the last one wins."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from cdk_triton import (
    AllAtOnce,
    DataCapture,
    S3File,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)
from cdk_triton.hosting import ITritonArtifactStore

if TYPE_CHECKING:
    from tests.hosting.conftest import World

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
FRANKFURT = cdk.Environment(account="111122223333", region="eu-central-1")


def serve(world: World, stack: cdk.Stack, store: ITritonArtifactStore | None = None) -> set[str]:
    """Everything that writes inline policies, with the same ids in each stack: the policies' construct ids."""
    images = ecr.Repository(stack, "Images")
    model = TritonModel(
        stack,
        "Model",
        repository=world.repository_with_plan(
            recipes=[TensorRTPlan("network", onnx=S3File(bucket="models", key="bert.onnx", sha256="ab" * 32))]
        ),
        platform=ServingPlatform(
            release="25.09", instance_type="ml.g5.2xlarge", image=f"{images.repository_uri}@sha256:{'a' * 64}"
        ),
        store=store or TritonArtifactStore.from_exports(stack, "Store", "triton-artifacts"),
        role=iam.Role.from_role_name(stack, "Shared", "shared"),
    )
    alarm = cloudwatch.Alarm.from_alarm_arn(
        stack, "Alarm", f"arn:aws:cloudwatch:{stack.region}:111122223333:alarm:errors"
    )
    TritonEndpoint(
        stack,
        "Endpoint",
        model=model,
        endpoint_name=f"text-{stack.node.addr}",
        deployment_policy=AllAtOnce(termination_wait=cdk.Duration.minutes(5), alarms=[alarm]),
        data_capture=DataCapture(
            bucket=s3.Bucket.from_bucket_name(stack, "Captured", "captured"), prefix="text", sampling_percentage=1
        ),
    )
    # The id of a policy that is replaced is a hash, below the id that it had in version 0.1.0.
    paths = [node.node.path.split("/") for node in stack.node.find_all() if isinstance(node, iam.Policy)]
    return {path[-2] if re.fullmatch("[0-9a-f]{7}", path[-1]) else path[-1] for path in paths}


def names(world: World, stack: cdk.Stack) -> list[str]:
    policies = world.resources(stack, "AWS::IAM::Policy").values()
    return [json.dumps(policy["Properties"]["PolicyName"]) for policy in policies]


def test_stacks_of_one_app_do_not_overwrite_each_others_policies(world: World) -> None:
    app = world.app()
    stacks = [cdk.Stack(app, name, env=IRELAND) for name in ("Search", "Chat")]
    kinds = [serve(world, stack) for stack in stacks]

    found = [name for stack in stacks for name in names(world, stack)]
    assert kinds == [{"BuildImagePull", "BuildInputs", "Policy", "RollbackAlarmsPolicy", "DataCapturePolicy"}] * 2
    assert len(found) == len(set(found)) == 10


def test_nor_do_those_that_use_one_store_of_the_app(world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts", env=IRELAND), "Store")
    stacks = [cdk.Stack(app, name, env=IRELAND) for name in ("Search", "Chat")]
    kinds = [serve(world, stack, store) for stack in stacks]

    found = [name for stack in stacks for name in names(world, stack)]
    assert kinds == [{"BuildImagePull", "Policy", "RollbackAlarmsPolicy", "DataCapturePolicy"}] * 2
    assert len(found) == len(set(found)) == 8


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"stack_name": "search", "env": IRELAND}, {"stack_name": "chat", "env": IRELAND}),
        ({"stack_name": "search", "env": IRELAND}, {"stack_name": "search", "env": FRANKFURT}),
        ({"stack_name": "search"}, {"stack_name": "chat"}),
    ],
    ids=["other stack", "other region", "unknown region"],
)
def test_nor_do_those_of_two_apps(
    first: dict[str, object], second: dict[str, object], nested: bool, world: World
) -> None:
    found: list[str] = []
    for index, options in enumerate((first, second)):
        stack = cdk.Stack(world.app(f"out{index}"), "Models", **options)  # type: ignore[arg-type]  # of several types
        place = cdk.NestedStack(stack, "Nested") if nested else stack
        serve(world, place)
        found += names(world, place)

    assert len(found) == len(set(found)) == 10


def test_a_stack_of_an_unknown_region_names_them_by_the_one_that_it_is_deployed_to(world: World) -> None:
    stack = cdk.Stack(world.app(), "Search")
    serve(world, stack)

    assert all('{"Ref": "AWS::Region"}' in name for name in names(world, stack))


def test_names_are_what_iam_takes(world: World) -> None:
    stack = cdk.Stack(world.app(), "S" + "x" * 127, env=IRELAND)
    place = stack
    for name in ("Of the team", "für alle", "y" * 40):
        place = cdk.NestedStack(place, name)
    serve(world, place)

    found = [json.loads(name) for name in names(world, place)]
    assert len(set(found)) == 5
    assert all(re.fullmatch(r"[\w+=,.@-]{1,128}", name, re.ASCII) for name in found)
