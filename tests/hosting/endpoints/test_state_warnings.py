"""Models that keep state behind several instances are warned of."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from tests.hosting.conftest import NETWORK

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    ServingPlatform,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def on(model: TritonModel, count: int, name: str = "AllTraffic") -> TritonVariant:
    return TritonVariant(model=model, variant_name=name, initial_instance_count=count)


def warnings(stack: cdk.Stack) -> list[str]:
    of_state = Match.string_like_regexp(r"ack: cdk-triton:StateOnSeveralInstances\]")
    found = Annotations.from_stack(stack).find_warning("*", of_state)
    return [str(each.entry.data) for each in found]


@pytest.fixture(name="stateful")
def _stateful(world: World, stack: cdk.Stack) -> TritonModel:
    """A model with a sequence batcher."""
    repository = world.repository(network=f"{NETWORK} sequence_batching {{ }}")
    return TritonModel(stack, "Stateful", repository=repository, platform=world.platform)


@pytest.mark.parametrize("case", ["several", "scaled", "two variants", "one"])
def test_state_behind_several_instances_is_warned_of(
    messages: Messages, stack: cdk.Stack, stateful: TritonModel, case: str
) -> None:
    counts = {"several": [3], "two variants": [1, 1]}.get(case, [1])
    variants = [on(stateful, count, f"V{number}") for number, count in enumerate(counts)]
    endpoint = TritonEndpoint(stack, "Endpoint", variants=variants)
    if case == "scaled":
        endpoint.variant("V0").auto_scale_instance_count(min_capacity=1, max_capacity=4)

    found = warnings(stack)
    assert len(found) == (case != "one")
    for warning in found:
        messages.record("cdk-triton:StateOnSeveralInstances", warning)


@pytest.mark.parametrize(
    ("weights", "instances", "is_warned"),
    [
        pytest.param((1, 0.5), 1, True, id="a part of the requests"),
        pytest.param((1, 1), 2, True, id="two instances"),
        pytest.param((1, 1), 1, False, id="all requests on one instance"),
        pytest.param((1, 0), 1, False, id="no requests"),
    ],
)
def test_a_shadow_that_does_not_see_whole_sequences_is_warned_of(
    messages: Messages,
    stack: cdk.Stack,
    stateful: TritonModel,
    weights: tuple[float, float],
    instances: int,
    *,
    is_warned: bool,
) -> None:
    production = TritonVariant(model=stateful, initial_weight=weights[0])
    shadow = TritonVariant(
        model=stateful, variant_name="Shadow", initial_weight=weights[1], initial_instance_count=instances
    )
    TritonEndpoint(stack, "Endpoint", variants=[production], shadow=shadow)

    found = warnings(stack)
    assert len(found) == is_warned
    for warning in found:
        messages.record("cdk-triton:StateOnSeveralInstances", warning)


def test_pools_and_multi_model_endpoints_are_warned_of(
    messages: Messages, world: World, stack: cdk.Stack, stateful: TritonModel
) -> None:
    repository = world.repository(network=f"{NETWORK} sequence_batching {{ }}")
    other = ServingPlatform(release=world.platform.release, instance_type="ml.g6.2xlarge")
    fallback = TritonModel(stack, "Fallback", repository=repository, platform=other)
    TritonEndpoint(stack, "Pools", variants=[TritonVariant(model=stateful, fallback_models=[fallback])])
    multi_model = TritonMultiModel(stack, "Fleet", platform=world.platform, ensembles={"text": repository})
    TritonEndpoint(stack, "Endpoint", model=multi_model)

    found = warnings(stack)
    assert len(found) == 2
    for warning in found:
        messages.record("cdk-triton:StateOnSeveralInstances", warning)


def test_a_model_without_state_may_have_instances(stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", variants=[on(model, 3, "A"), on(model, 3, "B")])
    assert warnings(stack) == []


def test_an_iterative_sequence_is_one_request(world: World, stack: cdk.Stack) -> None:
    repository = world.repository(network=f"{NETWORK} sequence_batching {{ iterative_sequence: true }}")
    model = TritonModel(stack, "Model", repository=repository, platform=world.platform)
    TritonEndpoint(stack, "Endpoint", variants=[on(model, 3)])
    assert warnings(stack) == []


def test_a_model_with_state_that_is_not_loaded_does_not_matter(world: World, stack: cdk.Stack) -> None:
    root = world.repository(network=f"{NETWORK} sequence_batching {{ }}").root
    shutil.copytree(root / "network", root / "other")
    (root / "other" / "config.pbtxt").write_text(NETWORK)
    model = TritonModel(
        stack,
        "Model",
        repository=ModelRepository.from_directory(root),
        platform=world.platform,
        environment=ContainerEnvironment(default_model_name="other"),
    )
    TritonEndpoint(stack, "Endpoint", variants=[on(model, 3)])
    assert warnings(stack) == []
