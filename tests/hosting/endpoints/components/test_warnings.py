"""What the constructs warn of when the app is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from tests.hosting.conftest import NETWORK
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM, warnings

from cdk_triton import ServingPlatform, TritonComponents, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def check(messages: Messages, stack: cdk.Stack, *codes: str) -> None:
    found = warnings(stack)
    assert set(found) == set(codes)
    for code, text in found.items():
        messages.record(code, text)


def endpoint(stack: cdk.Stack, **counts: Any) -> TritonComponents:
    return TritonComponents(stack, "Components", platform=PLATFORM, **counts)


def test_nothing_is_warned_of_where_everything_has_room(
    messages: Messages, stack: cdk.Stack, text: TritonModel
) -> None:
    components = endpoint(stack, max_instance_count=1)
    components.add_component("First", model=text, **COPY, copies=2)
    components.add_component("Second", model=text, **COPY)
    check(messages, stack)


def test_instances_without_a_component_are_warned_of(messages: Messages, stack: cdk.Stack) -> None:
    endpoint(stack, max_instance_count=1)
    check(messages, stack, "NoComponent")


def test_a_maximum_that_stands_for_any_number_is_counted_at_once(
    messages: Messages, stack: cdk.Stack, text: TritonModel
) -> None:
    component = endpoint(stack, max_instance_count=1).add_component("Text", model=text, **COPY)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=10**9)
    count.scale_on_invocations("Requests", max_requests_per_second=40)
    check(messages, stack, "CopiesBeyondInstances")
    assert "1000000000 copies together, which need 250000000 instances" in warnings(stack)["CopiesBeyondInstances"]


@pytest.mark.parametrize(("copies", "most", "is_warned"), [(1, None, False), (2, None, True), (1, 2, True)])
def test_state_in_several_copies_is_warned_of(
    messages: Messages, world: World, stack: cdk.Stack, copies: int, most: int | None, *, is_warned: bool
) -> None:
    repository = world.repository("words", network=f"{NETWORK} sequence_batching {{ }}")
    model = TritonModel(stack, "Words", repository=repository, platform=PLATFORM)
    component = endpoint(stack, max_instance_count=1).add_component("Words", model=model, **COPY, copies=copies)
    if most is not None:
        count = component.auto_scale_copies(min_capacity=1, max_capacity=most)
        count.scale_on_invocations("Requests", max_requests_per_second=40)
    check(messages, stack, *["StateOnSeveralInstances"] * is_warned)


def test_an_update_needs_free_gpus(messages: Messages, stack: cdk.Stack, text: TritonModel) -> None:
    components = endpoint(stack, max_instance_count=1)
    components.add_component("Wide", model=text, accelerators=2, memory=cdk.Size.gibibytes(8))
    components.add_component("Narrow", model=text, **COPY)
    check(messages, stack, "NoRoomForUpdate")
    # One GPU is free, for a copy of Narrow.
    assert "update of component 'Wide' starts" in warnings(stack)["NoRoomForUpdate"]


def test_another_instance_is_room_for_an_update(messages: Messages, stack: cdk.Stack, text: TritonModel) -> None:
    components = endpoint(stack, max_instance_count=2)
    components.add_component("Text", model=text, **COPY, copies=4)
    check(messages, stack)


def test_first_copies_wait_for_instances(messages: Messages, stack: cdk.Stack, text: TritonModel) -> None:
    components = endpoint(stack, max_instance_count=3)
    components.add_component("Text", model=text, **COPY, copies=5)
    check(messages, stack, "CopiesWaitForInstances")


def test_copies_may_scale_beyond_the_instances(messages: Messages, stack: cdk.Stack, text: TritonModel) -> None:
    components = endpoint(stack, max_instance_count=2)
    for name in ("First", "Second"):
        count = components.add_component(name, model=text, **COPY).auto_scale_copies(min_capacity=1, max_capacity=5)
        count.scale_on_invocations("Requests", max_requests_per_second=4)
    check(messages, stack, "CopiesBeyondInstances")


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("all_asleep", [True, False], ids=["all", "one"])
def test_instances_go_where_every_copy_does(
    messages: Messages, stack: cdk.Stack, text: TritonModel, least: int, all_asleep: bool
) -> None:
    components = endpoint(stack, min_instance_count=least, max_instance_count=2)
    first = components.add_component("First", model=text, **COPY)
    first.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)
    second = components.add_component("Second", model=text, **COPY)
    if all_asleep:
        second.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)
    regional = [] if least else ["ScaleToZeroInstances"]
    check(messages, stack, *regional, *([] if all_asleep and not least else ["InstancesStay"]))


def test_no_copy_at_first_is_warned_of(messages: Messages, components: TritonComponents, text: TritonModel) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=0)
    component.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)
    check(messages, cdk.Stack.of(components), "NoInitialCopy", "InstancesStay")


def test_limits_without_a_policy_are_warned_of(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    components.add_component("Text", model=text, **COPY).auto_scale_copies(min_capacity=1, max_capacity=2)
    check(messages, stack, "NothingScales")


def test_memory_that_a_host_may_keep_is_warned_of(messages: Messages, world: World, stack: cdk.Stack) -> None:
    small = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=small)
    components = TritonComponents(stack, "Components", platform=small, max_instance_count=4)
    components.add_component("Fits", model=model, accelerators=1, memory=cdk.Size.mebibytes(4095))
    assert "ComponentMemory" not in warnings(stack)

    components.add_component("Large", model=model, accelerators=1, memory=cdk.Size.gibibytes(4))
    messages.record("ComponentMemory", warnings(stack)["ComponentMemory"])


def test_a_model_of_others_is_warned_of(messages: Messages, stack: cdk.Stack, components: TritonComponents) -> None:
    role = iam.Role.from_role_arn(stack, "Theirs", "arn:aws:iam::123456789012:role/theirs")
    model = TritonModel.from_model_attributes(stack, "Model", model_name="theirs", platform=PLATFORM, role=role)
    components.add_component("Text", model=model, **COPY)
    messages.record("ComponentOfOtherModel", warnings(stack)["ComponentOfOtherModel"])
