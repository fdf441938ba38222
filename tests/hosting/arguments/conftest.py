"""A stack with whatever the right arguments are made of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from cdk_triton.hosting import (
    Canary,
    Capacity,
    TritonArtifactStore,
    TritonComponents,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World


@pytest.fixture(name="given", scope="module")
def _given(shared_world: World) -> Any:
    """What the right arguments are made of; nothing is built anew for a refusal."""
    environment = cdk.Environment(account="111122223333", region="eu-west-1")
    stack = cdk.Stack(shared_world.app(), "Stack", env=environment)
    repository, platform = shared_world.repository(), shared_world.platform
    store = TritonArtifactStore(stack, "Store")
    model = TritonModel(stack, "Model", repository=repository, platform=platform, store=store)
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": repository}, platform=platform, store=store)
    policy = Canary(size=Capacity(25), wait=cdk.Duration.minutes(10))
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)
    watched = TritonEndpoint(stack, "Watched", model=model)
    vpc = ec2.Vpc(stack, "Vpc")
    components = TritonComponents(stack, "Components", platform=platform, max_instance_count=9)
    scaled, component = (
        components.add_component(name, model=model, accelerators=1, memory=cdk.Size.gibibytes(8))
        for name in ("Scaled", "Component")
    )
    return SimpleNamespace(
        scope=stack,
        repository=repository,
        platform=platform,
        store=store,
        model=model,
        fleet=fleet,
        endpoint=endpoint,
        fleet_endpoint=TritonEndpoint(stack, "FleetEndpoint", model=fleet),
        monitoring=watched.monitor(),
        count=watched.auto_scale_instance_count(min_capacity=1, max_capacity=4),
        components=components,
        component=component,
        copy_count=scaled.auto_scale_copies(min_capacity=1, max_capacity=4),
        imported=TritonEndpoint.from_endpoint_name(stack, "Imported", "other"),
        bucket=s3.Bucket(stack, "Bucket"),
        vpc=vpc,
        group=ec2.SecurityGroup(stack, "Group", vpc=vpc),
        role=iam.Role.from_role_name(stack, "Role", "somebody"),
    )
