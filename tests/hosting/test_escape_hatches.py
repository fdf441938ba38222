"""What the constructs do not offer can be done to the resources below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Template
from tests.security.everything import add_everything

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant

if TYPE_CHECKING:
    from constructs import IConstruct
    from tests.hosting.conftest import World


@pytest.fixture(scope="module", name="made")
def _made(shared_world: World) -> dict[str, IConstruct]:
    stack = cdk.Stack(shared_world.app(), "Stack")
    store = TritonArtifactStore(stack, "Store")
    repository, platform = shared_world.repository(), shared_world.platform
    model = TritonModel(stack, "Model", repository=repository, platform=platform, store=store)
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": repository}, platform=platform, store=store)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    return {"store": store, "model": model, "fleet": fleet, "endpoint": endpoint, "count": count}


def test_default_timeouts_can_be_removed(shared_world: World) -> None:
    """As the page of errors says: some endpoints take no explicit timeouts."""
    stack = cdk.Stack(shared_world.app("timeouts"), "Stack")
    model = TritonModel(stack, "Model", repository=shared_world.repository(), platform=shared_world.platform)
    minutes = cdk.Duration.minutes(20)
    variant = TritonVariant(model=model, container_startup_timeout=minutes, model_download_timeout=minutes)
    config = TritonEndpoint(stack, "Endpoint", variants=[variant]).node.find_child("Config")
    assert isinstance(config, sagemaker.CfnEndpointConfig)
    for timeout in ("ContainerStartupHealthCheckTimeoutInSeconds", "ModelDataDownloadTimeoutInSeconds"):
        config.add_property_deletion_override(f"ProductionVariants.0.{timeout}")

    (found,) = shared_world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]
    assert not [name for name in found if "Timeout" in name]


@pytest.mark.parametrize(
    ("name", "l1"),
    [
        ("store", s3.CfnBucket),
        ("model", sagemaker.CfnModel),
        ("fleet", sagemaker.CfnModel),
        ("endpoint", sagemaker.CfnEndpoint),
        ("count", autoscaling.CfnScalableTarget),
    ],
)
def test_the_default_child_is_the_l1(made: dict[str, IConstruct], name: str, l1: type) -> None:
    assert isinstance(made[name].node.default_child, l1)


def test_an_override_is_in_the_template(made: dict[str, IConstruct], shared_world: World) -> None:
    config = made["endpoint"].node.find_child("Config")
    assert isinstance(config, sagemaker.CfnEndpointConfig)
    config.add_property_override("ProductionVariants.0.EnableSSMAccess", True)
    l1 = made["model"].node.default_child
    assert isinstance(l1, sagemaker.CfnModel)
    l1.add_property_override("EnableNetworkIsolation", True)

    stack = cdk.Stack.of(config)
    (variant,) = shared_world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]
    assert variant["EnableSSMAccess"] is True
    models = shared_world.resources(stack, "AWS::SageMaker::Model").values()
    assert [each["Properties"].get("EnableNetworkIsolation") for each in models] == [True, None]


def test_every_resource_is_an_l1_that_takes_overrides(world: World) -> None:
    app = world.app()
    stacks = add_everything(world, app)
    l1s = [construct for construct in app.node.find_all() if isinstance(construct, cdk.CfnResource)]
    for l1 in l1s:
        l1.add_property_override("Overridden", True)

    resources = [r for stack in stacks for r in Template.from_stack(stack).to_json()["Resources"].values()]
    assert len(resources) == len(l1s)
    assert all(resource["Properties"]["Overridden"] is True for resource in resources)
