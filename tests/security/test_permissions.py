"""The managed policies of the library's own roles: none is larger than IAM takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import aws_cdk as cdk

from cdk_triton import CodeBuildGpuBuilder, S3File, SageMakerProcessingBuilder, TritonArtifactStore

if TYPE_CHECKING:
    from tests.hosting.conftest import World

MAX_CHARACTERS = 6144


def test_a_policy_that_is_full_is_followed_by_another(world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()])
    files = [S3File(bucket="models", key=f"{'weights/' * 10}{n}.onnx", sha256="ab" * 32) for n in range(100)]
    store._builder_for(store, world.platform, files)

    policies = {
        name: policy
        for name, policy in world.resources(stack, "AWS::IAM::ManagedPolicy").items()
        if name.startswith("StoreIsCompleteRole")
    }
    sizes = [
        len(json.dumps(policy["Properties"]["PolicyDocument"], separators=(",", ":"))) for policy in policies.values()
    ]
    assert 2 <= len(policies) <= 10
    assert max(sizes) <= MAX_CHARACTERS
    readable = json.dumps(world.statements(stack, "StoreIsCompleteRole"))
    assert all(file.key in readable for file in files)


def test_the_policies_of_an_ordinary_store_fit_one_each(world: World, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()])

    roles = world.resources(stack, "AWS::IAM::Role")
    assert len(world.resources(stack, "AWS::IAM::ManagedPolicy")) == len(roles)


def test_a_role_has_room_for_two_hundred_inputs(world: World, stack: cdk.Stack) -> None:
    """A role takes ten managed policies, and what is short everywhere is not taken for long."""
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()])
    files = [S3File(bucket="models", key=f"{'weights/' * 4}{n}.onnx", sha256="ab" * 32) for n in range(200)]
    store._builder_for(store, world.platform, files)

    policies = [
        policy["Properties"]["PolicyDocument"]
        for name, policy in world.resources(stack, "AWS::IAM::ManagedPolicy").items()
        if name.startswith("StoreIsCompleteRole")
    ]
    assert len(policies) <= 7
    assert max(len(json.dumps(policy, separators=(",", ":"))) for policy in policies) <= MAX_CHARACTERS
