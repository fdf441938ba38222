"""Secrets that reach a container's variables as CDK tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_secretsmanager as secretsmanager

from cdk_triton import ContainerEnvironment, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

Make = Callable[["World", cdk.Stack, str], Any]


def model(world: World, stack: cdk.Stack, value: str) -> Any:
    environment = ContainerEnvironment(variables={"HINT": value})
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, environment=environment)


def fleet(world: World, stack: cdk.Stack, value: str) -> Any:
    ensembles, environment = {"text": world.repository()}, ContainerEnvironment(variables={"HINT": value})
    return TritonMultiModel(stack, "Model", ensembles=ensembles, platform=world.platform, environment=environment)


def of_secrets_manager(stack: cdk.Stack) -> str:
    return secretsmanager.Secret(stack, "Secret").secret_value.unsafe_unwrap()


def wrapped(stack: cdk.Stack) -> str:
    return secretsmanager.Secret(stack, "Secret").secret_value.to_string()


def of_parameter_store(stack: cdk.Stack) -> str:
    return cdk.SecretValue.ssm_secure("/models/hub").unsafe_unwrap()


def within_a_text(stack: cdk.Stack) -> str:
    return f"Bearer {cdk.CfnParameter(stack, 'Hidden', no_echo=True).value_as_string}"


@pytest.mark.parametrize("make", [model, fleet])
@pytest.mark.parametrize(
    "value", [of_secrets_manager, wrapped, of_parameter_store, within_a_text], ids=lambda value: value.__name__
)
def test_a_secret_behind_a_token_is_rejected(
    messages: Messages, world: World, stack: cdk.Stack, make: Make, value: Callable[[cdk.Stack], str]
) -> None:
    with messages.raises(ConfigurationError) as caught:
        make(world, stack, value(stack))
    assert "'HINT'" in str(caught.value)


def test_the_arn_of_a_secret_and_a_parameter_that_may_be_seen_are_accepted(world: World, stack: cdk.Stack) -> None:
    secret, parameter = secretsmanager.Secret(stack, "Secret"), cdk.CfnParameter(stack, "Shown")
    environment = ContainerEnvironment(
        variables={"HUB_TOKEN": secret.secret_arn, "STAGE": parameter.value_as_string, "REGION": cdk.Aws.REGION}
    )
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, environment=environment)

    variables = world.only(stack, "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Environment"]
    assert variables["HUB_TOKEN"] == stack.resolve(secret.secret_arn)
    assert variables["STAGE"] == {"Ref": "Shown"}
