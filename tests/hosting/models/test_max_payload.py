"""`max_payload` of a `TritonModel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import (
    ContainerEnvironment,
    ServingPlatform,
    TritonComponents,
    TritonEndpoint,
    TritonModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def model(world: World, stack: cdk.Stack, size: Any, *, release: str = "26.05", **more: Any) -> TritonModel:
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge")
    return TritonModel(stack, "Model", repository=world.repository(), platform=platform, max_payload=size, **more)


def test_it_is_an_argument_of_the_server(world: World, stack: cdk.Stack) -> None:
    environment = ContainerEnvironment(additional_args=("--exit-timeout-secs=5",))
    made = model(world, stack, cdk.Size.mebibytes(200), environment=environment)

    variables = world.only(stack, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Environment"]
    assert variables["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] == "--exit-timeout-secs=5 --http-max-input-size=209715200"
    assert made.max_payload == 200 * 1024**2


def test_without_it_nothing_changes(world: World, stack: cdk.Stack) -> None:
    assert model(world, stack, None).max_payload is None
    variables = world.only(stack, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Environment"]
    assert "SAGEMAKER_TRITON_ADDITIONAL_ARGS" not in variables


@pytest.mark.parametrize(
    ("size", "release"),
    [
        pytest.param(cdk.Size.gibibytes(2), "26.05", id="more than SageMaker passes on"),
        pytest.param(cdk.Size.bytes(0), "26.05", id="nothing"),
        pytest.param(cdk.Size.mebibytes(200), "25.09", id="a front end with a fixed limit"),
        pytest.param(cdk.Size.mebibytes(200), "25.04", id="a front end without a limit"),
        pytest.param(200, "26.05", id="a number"),
    ],
)
def test_what_has_no_effect_is_rejected(
    messages: Messages, world: World, stack: cdk.Stack, size: Any, release: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        model(world, stack, size, release=release)
    assert "max_payload" in str(caught.value)


def test_a_token_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    size = cdk.Size.mebibytes(cdk.CfnParameter(stack, "Size", type="Number").value_as_number)
    with messages.raises(ConfigurationError):
        model(world, stack, size)


def test_the_option_is_given_once(messages: Messages, world: World, stack: cdk.Stack) -> None:
    environment = ContainerEnvironment(additional_args=("--http-max-input-size=1000",))
    with messages.raises(ConfigurationError):
        model(world, stack, cdk.Size.mebibytes(200), environment=environment)


def test_a_real_time_endpoint_gets_no_larger_requests(messages: Messages, world: World, stack: cdk.Stack) -> None:
    large = model(world, stack, cdk.Size.mebibytes(7))
    components = TritonComponents(stack, "Components", platform=large.platform, max_instance_count=1)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=large)
    small = TritonModel(stack, "Small", repository=world.repository(), platform=large.platform)
    shadow = TritonVariant(model=large, variant_name="Shadow")
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=small, shadow=shadow)
    with messages.raises(ConfigurationError):
        components.add_component("Text", model=large, accelerators=1, memory=cdk.Size.gibibytes(4))
