"""The resources that hold a deployment while an endpoint is being scaled, and the warning where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match

from cdk_triton import TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

WAIT, ENDPOINT = "Custom::TritonEndpointWait", "AWS::SageMaker::Endpoint"


def warnings(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("NoEndpointWait"))
    return [str(message.entry.data) for message in found]


def imported(world: World, stack: cdk.Stack) -> TritonVariant:
    role = iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::123456789012:role/search")
    model = TritonModel.from_model_attributes(
        stack, "Imported", model_name="search-v1", platform=world.platform, role=role
    )
    return TritonVariant(model=model, variant_name="Imported")


def test_the_endpoint_waits_for_the_store_of_its_model(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    waits = world.resources(stack, WAIT)

    assert len(waits) == 2
    assert set(world.only(stack, ENDPOINT)["DependsOn"]) & set(waits)
    assert warnings(stack) == []


def test_nobody_waits_for_an_imported_model(world: World, stack: cdk.Stack, messages: Messages) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[imported(world, stack)])
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)

    assert not world.resources(stack, WAIT)
    (warning,) = warnings(stack)
    messages.record("cdk-triton:NoEndpointWait", warning)


def test_a_store_of_one_model_waits_for_both(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    own = TritonVariant(model=model, variant_name="Own")
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[imported(world, stack), own])

    endpoint.variant("Own").auto_scale_instance_count(min_capacity=1, max_capacity=2)

    assert len(world.resources(stack, WAIT)) == 2
    assert warnings(stack) == []
