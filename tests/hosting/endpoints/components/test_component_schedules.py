"""Copies by the clock, and instances in a reserved capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM, warnings

from cdk_triton import TritonComponents, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TARGET, CONFIG = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::SageMaker::EndpointConfig"
MORNING = autoscaling.Schedule.cron(hour="7", minute="0")
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/search"


def test_a_schedule_changes_the_limits_of_the_copies(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=4)
    count.scale_on_schedule("Morning", schedule=MORNING, min_capacity=3, max_capacity=6)

    (action,) = world.only(stack, TARGET)["Properties"]["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 3, "MaxCapacity": 6}
    assert (component.min_copies, component.max_copies) == (1, 6)
    assert warnings(stack) == {}


def test_the_copies_of_a_schedule_need_room(stack: cdk.Stack, components: TritonComponents, text: TritonModel) -> None:
    component = components.add_component("Text", model=text, **COPY)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=8)
    count.scale_on_schedule("Morning", schedule=MORNING, max_capacity=9)

    assert "may scale to 9 copies" in warnings(stack)["CopiesBeyondInstances"]


def test_a_component_that_scales_to_zero_may_be_there_by_the_clock(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    count = components.add_component("Text", model=text, **COPY).scale_to_zero(
        "Idle", max_capacity=4, max_requests_per_second=10
    )
    count.scale_on_schedule("Evening", schedule=MORNING, min_capacity=0)

    (action,) = world.only(stack, TARGET)["Properties"]["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 0}


@pytest.mark.parametrize(
    ("limits", "named"),
    [({}, "changes nothing"), ({"min_capacity": 0}, "scale_to_zero"), ({"min_capacity": 5}, "max_capacity 4")],
    ids=["none", "zero", "above the maximum"],
)
def test_limits_of_a_schedule_that_cannot_be_meant_are_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel, limits: dict[str, Any], named: str
) -> None:
    count = components.add_component("Text", model=text, **COPY).auto_scale_copies(min_capacity=1, max_capacity=4)
    with messages.raises(ConfigurationError) as caught:
        count.scale_on_schedule("Morning", schedule=MORNING, **limits)
    assert named in str(caught.value)


def test_a_long_id_leaves_room_in_the_description_of_an_alarm(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("x" * 1100, model=text, **COPY)
    component.scale_to_zero("Idle", max_capacity=4, max_requests_per_second=10)

    (alarm,) = world.resources(stack, "AWS::CloudWatch::Alarm").values()
    assert len(alarm["Properties"]["AlarmDescription"]) <= 1024  # AlarmDescription of PutMetricAlarm


# Reserved capacity.


def test_all_instances_start_in_a_reservation(world: World) -> None:
    stack = cdk.Stack(world.app(), "Reserved", env=cdk.Environment(account="111122223333", region="us-east-1"))
    TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=2, capacity_reservation_arn=PLAN)

    (variant,) = world.only(stack, CONFIG)["Properties"]["ProductionVariants"]
    assert variant["CapacityReservationConfig"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": PLAN,
    }


@pytest.mark.parametrize("arn", ["search", PLAN.replace("us-east-1", "eu-west-1")], ids=["no ARN", "another region"])
def test_a_reservation_that_cannot_be_used_is_rejected(messages: Messages, world: World, arn: str) -> None:
    stack = cdk.Stack(world.app(), "Reserved", env=cdk.Environment(account="111122223333", region="us-east-1"))
    with messages.raises(ConfigurationError):
        TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=2, capacity_reservation_arn=arn)
