"""What the store's stack exports, which must not depend on the stacks that use the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from cdk_triton import S3File, ServingPlatform, TensorRTPlan, TritonArtifactStore, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
PROFILES = [{"IDS": ([1, 4], [8, 4], [8, 4])}]
RECIPES = [TensorRTPlan("network", onnx="network.onnx", profiles=PROFILES)]
OWN_IMAGE = ServingPlatform(
    release="25.09",
    instance_type="ml.g5.2xlarge",
    image=f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror/triton@sha256:{'a' * 64}",
)
Use = Callable[["World", cdk.Stack, TritonArtifactStore], object]


def multi_model(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> TritonMultiModel:
    return TritonMultiModel(stack, "Fleet", store=store, platform=world.platform)


def publisher(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> None:
    multi_model(world, stack, store).add_publisher()


def publisher_that_builds(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> None:
    multi_model(world, stack, store).add_publisher(recipes=RECIPES)


def grants(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.AccountRootPrincipal())
    fleet = multi_model(world, stack, store)
    fleet.add_publisher()
    fleet.grant_read_catalogue(role)
    store.grant_read(role)


def model(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> None:
    TritonModel(stack, "Model", store=store, platform=world.platform, repository=world.repository("text"))


def build_with_a_grant(world: World, stack: cdk.Stack, store: TritonArtifactStore) -> None:
    """The stack allows the roles of the builds to pull its image, and the handler to read its input."""
    onnx = S3File(bucket="models", key="bert/bert.onnx", sha256="ab" * 32)
    recipes = [TensorRTPlan("network", onnx=onnx, profiles=PROFILES)]
    repository = world.repository_with_plan(recipes=recipes)
    TritonModel(stack, "Model", store=store, platform=OWN_IMAGE, repository=repository)


@pytest.mark.parametrize("options", [{}, {"key": True}, {"vpc": True}], ids=["plain", "key", "vpc"])
def test_the_exports_are_the_same_whatever_uses_the_store(world: World, options: dict[str, bool]) -> None:
    """Otherwise `cdk deploy --all` fails when a feature is removed, because the old export is still in use."""

    def exports(use: Use | None) -> set[str]:
        app = world.app()
        artifacts, serving = (cdk.Stack(app, name, env=IRELAND) for name in ("Artifacts", "Serving"))
        arguments: dict[str, Any] = {}
        if options.get("key"):
            arguments["encryption_key"] = kms.Key(artifacts, "Key", enable_key_rotation=True)
            arguments["former_keys"] = [kms.Key(artifacts, "Former", enable_key_rotation=True)]
        if options.get("vpc"):
            arguments["vpc"] = ec2.Vpc(artifacts, "Vpc", max_azs=2)
        store = TritonArtifactStore(artifacts, "Store", **arguments)
        if use is not None:
            use(world, serving, store)
        return {output["Export"]["Name"] for output in world.template(artifacts).get("Outputs", {}).values()}

    unused = exports(None)
    assert unused
    for use in (model, build_with_a_grant, publisher, publisher_that_builds, grants):
        assert exports(use) == unused, use.__name__
