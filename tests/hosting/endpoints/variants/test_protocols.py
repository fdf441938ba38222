"""Variants of one endpoint whose containers have different inference types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    import aws_cdk as cdk
    from tests.hosting.conftest import World

    from golden_messages import Messages

CODE = "cdk-triton:VariantsSpeakDifferentProtocols"


def warnings(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"ack: {CODE}\]"))
    return [str(each.entry.data) for each in found]


@pytest.fixture(name="infers")
def _infers(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Infers", repository=world.repository("one"), platform=world.platform)


@pytest.fixture(name="streams")
def _streams(world: World, stack: cdk.Stack) -> TritonModel:
    environment = ContainerEnvironment(inference_type="generate_stream")
    repository = world.repository("two")
    return TritonModel(stack, "Streams", repository=repository, platform=world.platform, environment=environment)


@pytest.mark.parametrize(("weight", "is_warned"), [(1, True), (0, False)])
def test_a_request_that_reaches_another_protocol_is_warned_of(
    messages: Messages,
    stack: cdk.Stack,
    infers: TritonModel,
    streams: TritonModel,
    weight: float,
    *,
    is_warned: bool,
) -> None:
    other = TritonVariant(model=streams, variant_name="Green", initial_weight=weight)
    TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=infers, variant_name="Blue"), other])
    found = warnings(stack)
    assert len(found) == is_warned
    for warning in found:
        messages.record(CODE, warning)


def test_a_shadow_with_another_protocol_is_warned_of(
    stack: cdk.Stack, infers: TritonModel, streams: TritonModel
) -> None:
    shadow = TritonVariant(model=infers, variant_name="Shadow")
    TritonEndpoint(stack, "Endpoint", model=streams, shadow=shadow)
    assert len(warnings(stack)) == 1


def test_variants_with_the_same_protocol_are_not(stack: cdk.Stack, streams: TritonModel) -> None:
    variants = [TritonVariant(model=streams, variant_name=name) for name in ("Blue", "Green")]
    TritonEndpoint(stack, "Endpoint", variants=variants)
    assert warnings(stack) == []
