"""Components and counts that cannot be meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM

from cdk_triton import ServingPlatform, TritonComponents, TritonEndpoint, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        ({"min_instance_count": -1}, "min_instance_count"),
        ({"min_instance_count": True}, "min_instance_count"),
        ({"max_instance_count": 0, "min_instance_count": 0}, "max_instance_count"),
        ({"max_instance_count": "2"}, "max_instance_count"),
        ({"initial_instance_count": 0, "min_instance_count": 0}, "initial_instance_count"),
        ({"initial_instance_count": 3}, "begins with 3"),
        ({"min_instance_count": 4}, "begins with 4"),
    ],
    ids=["-1", "True", "0 at most", "text", "0 at first", "3 at first", "4 at least"],
)
def test_numbers_of_instances_that_cannot_be_meant_are_rejected(
    messages: Messages, stack: cdk.Stack, counts: dict[str, Any], named: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        TritonComponents(stack, "Components", platform=PLATFORM, **{"max_instance_count": 2, **counts})
    assert named in str(caught.value)

    TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=1)  # nothing was left behind


@pytest.mark.parametrize(
    ("copy", "named"),
    [
        ({"accelerators": 0}, "accelerators"),
        ({"accelerators": 0.5}, "a GPU is not shared"),
        ({"accelerators": 5}, "5 accelerators"),
        ({"memory": cdk.Size.mebibytes(127)}, "127 MiB"),
        ({"memory": cdk.Size.kibibytes(1024 * 200 + 1)}, "whole MiB"),
        ({"memory": cdk.Size.gibibytes(193)}, "MiB of memory"),
        ({"memory": 8192}, "Size"),
        ({"memory": cdk.Size.gibibytes(cdk.Token.as_number({"Ref": "Memory"}))}, "token"),
        ({"cpus": 0.2}, "cpus"),
        ({"cpus": "2"}, "cpus"),
        ({"cpus": 49}, "49 cpus"),
        ({"copies": -1}, "copies"),
        ({"copies": 1.5}, "copies"),
        ({"copies": 2**2000}, "0 to 2,147,483,647"),
        ({"copies": 10**9}, "need 250000000 ml.g5.12xlarge"),
        ({"copies": 9}, "need 3 ml.g5.12xlarge"),
        ({"accelerators": 3, "copies": 3}, "need 3 ml.g5.12xlarge"),
        ({"memory": cdk.Size.gibibytes(100), "copies": 3}, "need 3 ml.g5.12xlarge"),
        ({"model": "text"}, "model"),
    ],
    ids=[
        "no GPU",
        "half a GPU",
        "five GPUs",
        "little memory",
        "no whole MiB",
        "much memory",
        "memory as a number",
        "memory as a token",
        "few CPUs",
        "CPUs as text",
        "many CPUs",
        "-1 copies",
        "1.5 copies",
        "2^2000 copies",
        "a billion copies",
        "nine copies",
        "copies of three GPUs",
        "copies of half the memory",
        "a model by name",
    ],
)
def test_a_copy_that_cannot_be_meant_is_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel, copy: dict[str, Any], named: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        components.add_component("Text", **{"model": text, **COPY, **copy})
    assert named in str(caught.value)

    components.add_component("Text", model=text, **COPY)  # nothing was left behind


def test_the_copies_of_all_components_need_room(
    messages: Messages, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("First", model=text, **COPY, copies=6)
    with messages.raises(ConfigurationError):
        components.add_component("Second", model=text, **COPY, copies=3)

    components.add_component("Second", model=text, **COPY, copies=2)


def test_each_component_has_a_name_of_its_own(
    messages: Messages, components: TritonComponents, text: TritonModel
) -> None:
    for id in ("", "search/text", "search\ntext"):
        with messages.raises(ConfigurationError):
            components.add_component(id, model=text, **COPY)
    with pytest.raises(ConfigurationError) as caught:
        components.add_component(cdk.Aws.STACK_NAME, model=text, **COPY)
    messages.record("ConfigurationError", re.sub(r"[.]\d+]", ".N]", str(caught.value)))
    components.add_component("Text", model=text, **COPY)
    with messages.raises(ConfigurationError):
        components.add_component("Text", model=text, **COPY)


def test_the_role_of_a_model_has_room_for_four_components(
    messages: Messages, world: World, stack: cdk.Stack, text: TritonModel
) -> None:
    one, other = (TritonComponents(stack, name, platform=PLATFORM, max_instance_count=2) for name in ("One", "Other"))
    for endpoint in (one, other):
        for name in ("First", "Second"):
            endpoint.add_component(name, model=text, **COPY)
    with messages.raises(ConfigurationError):
        other.add_component("Third", model=text, **COPY)

    again = TritonModel(stack, "Again", repository=world.repository(), platform=PLATFORM)
    other.add_component("Third", model=again, **COPY)


def test_a_multi_model_is_rejected(
    messages: Messages, world: World, stack: cdk.Stack, components: TritonComponents
) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=PLATFORM)
    with messages.raises(ConfigurationError):
        components.add_component("Fleet", model=fleet, **COPY)


@pytest.mark.parametrize(
    "platform",
    [
        ServingPlatform(release="25.04", instance_type="ml.g5.12xlarge"),
        ServingPlatform(release="25.09", instance_type="ml.g5.24xlarge"),
        ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge", inference_ami_version=None),
    ],
    ids=["release", "instance type", "host AMI"],
)
def test_a_model_of_another_platform_is_rejected(
    messages: Messages, world: World, stack: cdk.Stack, components: TritonComponents, platform: ServingPlatform
) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    with messages.raises(ConfigurationError):
        components.add_component("Text", model=model, **COPY)


@pytest.mark.parametrize("own_groups", [True, False], ids=["own groups", "isolation"])
def test_models_in_different_places_are_rejected(
    messages: Messages, world: World, stack: cdk.Stack, components: TritonComponents, own_groups: bool
) -> None:
    place: dict[str, Any] = {"vpc": ec2.Vpc(stack, "Vpc")} if own_groups else {}
    first = TritonModel(stack, "First", repository=world.repository("first"), platform=PLATFORM, **place)
    components.add_component("First", model=first, **COPY)
    second = TritonModel(
        stack,
        "Second",
        repository=world.repository("second"),
        platform=PLATFORM,
        network_isolation=not own_groups,
        **place,
    )
    with messages.raises(ConfigurationError):
        components.add_component("Second", model=second, **COPY)


def test_a_role_has_room_for_the_policies_of_five_components_and_their_successors(
    messages: Messages, world: World, stack: cdk.Stack, text: TritonModel
) -> None:
    components = TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=3)
    again = TritonModel(stack, "Again", repository=world.repository(), platform=PLATFORM)
    for number in range(5):
        components.add_component(f"Text{number}", model=again if number else text, **COPY)
    with messages.raises(ConfigurationError):
        components.add_component("Text5", model=text, **COPY)


def test_names_of_endpoints_are_unique(messages: Messages, stack: cdk.Stack, text: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=text, endpoint_name="search")
    with messages.raises(ConfigurationError):
        TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=1, endpoint_name="Search")
    with messages.raises(ConfigurationError):
        TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=1, endpoint_name="the search")


# Scaling.


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ((0, 4), "scale_to_zero"),
        ((-1, 4), "min_capacity"),
        ((False, 4), "min_capacity"),
        ((1, 0), "max_capacity"),
        ((1, 1.5), "max_capacity"),
        ((2, 1), "raise max_capacity"),
        ((2, 4), "begins with copies=1"),
    ],
    ids=["0 to 4", "-1 to 4", "False to 4", "1 to 0", "1 to 1.5", "2 to 1", "2 to 4"],
)
def test_limits_of_copies_that_cannot_be_meant_are_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel, limits: tuple[Any, Any], named: str
) -> None:
    component = components.add_component("Text", model=text, **COPY)
    with messages.raises(ConfigurationError) as caught:
        component.auto_scale_copies(min_capacity=limits[0], max_capacity=limits[1])
    assert named in str(caught.value)

    component.auto_scale_copies(min_capacity=1, max_capacity=1)  # nothing was left behind


def test_a_component_is_scaled_once(messages: Messages, components: TritonComponents, text: TritonModel) -> None:
    component = components.add_component("Text", model=text, **COPY)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=4)
    count.scale_on_invocations("Requests", max_requests_per_second=40)
    with messages.raises(ConfigurationError):
        component.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("Again", max_requests_per_second=10)


def test_targets_that_cannot_be_meant_are_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY)
    with messages.raises(ConfigurationError):
        component.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=0)
    with messages.raises(ConfigurationError):
        component.scale_to_zero("Idle", max_capacity=0, max_requests_per_second=1)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=4)  # nothing was left behind
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("Requests", max_requests_per_second=0)
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("Requests", max_requests_per_second=1, safety_factor=2)
    with messages.raises(ConfigurationError):
        count.scale_on_concurrent_requests("Requests", target_concurrent_requests=-1)
