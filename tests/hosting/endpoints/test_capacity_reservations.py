"""Variants on instances that were reserved: a training plan, or an ML reservation that AWS Support set up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

HERE = cdk.Environment(account="111122223333", region="us-east-1")
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/search"


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Reserved", env=HERE)


@pytest.fixture(name="model")
def _model(world: World, stack: cdk.Stack) -> TritonModel:
    platform = ServingPlatform(release="25.09", instance_type="ml.p5.48xlarge")
    return TritonModel(stack, "Model", repository=world.repository(), platform=platform)


def variants(model: TritonModel, *arns: str | None) -> list[TritonVariant]:
    return [
        TritonVariant(model=model, variant_name=f"V{number}", capacity_reservation_arn=arn)
        for number, arn in enumerate(arns)
    ]


@pytest.mark.parametrize(
    "arn",
    [PLAN, "arn:aws:sagemaker:us-east-1:444455556666:ml-reservation/abc"],
    ids=["training plan", "ML reservation of another account"],
)
def test_a_reservation_is_written_with_the_one_preference(
    world: World, stack: cdk.Stack, model: TritonModel, arn: str
) -> None:
    TritonEndpoint(stack, "Endpoint", variants=variants(model, arn, None))

    reserved, other = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]

    assert reserved["CapacityReservationConfig"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": arn,
    }
    assert "CapacityReservationConfig" not in other


def test_a_reservation_may_be_a_parameter(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    parameter = cdk.CfnParameter(stack, "Plan")
    TritonEndpoint(stack, "Endpoint", variants=variants(model, parameter.value_as_string))

    (variant,) = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]

    assert variant["CapacityReservationConfig"]["MlReservationArn"] == {"Ref": "Plan"}


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "search",
        "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-0123456789abcdef0",
        "arn:aws:sagemaker:us-east-1:1111:training-plan/search",
        "arn:aws:sagemaker:us-east-1:111122223333:training-plan",
        f"{PLAN}{'x' * 258}",
    ],
    ids=["empty", "a name", "of EC2", "no account", "without a name", "too long"],
)
def test_what_is_not_the_arn_of_a_reservation_is_rejected(messages: Messages, model: TritonModel, arn: str) -> None:
    with messages.raises(ConfigurationError):
        TritonVariant(model=model, capacity_reservation_arn=arn)


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/search",
        "arn:aws:sagemaker:us-east-1:444455556666:training-plan/search",
        "arn:aws:sagemaker:eu-west-1:111122223333:ml-reservation/search",
    ],
    ids=["plan of another region", "plan of another account", "ML reservation of another region"],
)
def test_a_reservation_of_another_place_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel, arn: str
) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", variants=variants(model, arn))


def test_an_endpoint_has_one_reservation(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Same", variants=variants(model, PLAN, PLAN))
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", variants=variants(model, PLAN, f"{PLAN}-2"))


def test_a_shadow_has_the_reservation_of_its_endpoint(
    messages: Messages, world: World, stack: cdk.Stack, model: TritonModel
) -> None:
    (production,) = variants(model, PLAN)
    shadow = TritonVariant(model=model, variant_name="Shadow", capacity_reservation_arn=PLAN)
    TritonEndpoint(stack, "Endpoint", variants=[production], shadow=shadow)
    (written,) = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ShadowProductionVariants"]
    assert written["CapacityReservationConfig"]["MlReservationArn"] == PLAN

    other = TritonVariant(model=model, variant_name="Shadow", capacity_reservation_arn=f"{PLAN}-2")
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Other", variants=[production], shadow=other)
