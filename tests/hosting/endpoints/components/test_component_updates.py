"""How a component is updated: its rolling policy and the alarms that roll an update back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM, warnings

from cdk_triton import Canary, Capacity, Rolling, TritonComponents, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

COMPONENT = "AWS::SageMaker::InferenceComponent"
ALARM = "AWS::CloudWatch::Alarm"
MINUTE = cdk.Duration.minutes(1)
POLICY = Rolling(batch=Capacity(copies=1), wait=cdk.Duration.minutes(10), rollback_batch=Capacity(copies=1))


def deployment_config(world: World, stack: cdk.Stack) -> Any:
    return world.only(stack, COMPONENT)["Properties"].get("DeploymentConfig")


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        (None, None),
        (
            Rolling(
                batch=Capacity(copies=2),
                wait=MINUTE,
                rollback_batch=Capacity(100),
                maximum_time=cdk.Duration.hours(8),
            ),
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 2},
                    "WaitIntervalInSeconds": 60,
                    "MaximumExecutionTimeoutInSeconds": 28800,
                    "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
                }
            },
        ),
        (
            Rolling(batch=Capacity(50), wait=cdk.Duration.seconds(0)),
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
                    "WaitIntervalInSeconds": 0,
                }
            },
        ),
    ],
    ids=["none", "copies", "percent"],
)
def test_a_policy_is_written_by_copies(
    world: World,
    stack: cdk.Stack,
    components: TritonComponents,
    text: TritonModel,
    policy: Rolling | None,
    written: Any,
) -> None:
    components.add_component("Text", model=text, **COPY, copies=4, deployment_policy=policy)

    found = deployment_config(world, stack)
    assert found == written
    if found is not None:
        shape = ServiceModel(Loader().load_service_model("sagemaker", "service-2")).shape_for(
            "InferenceComponentDeploymentConfig"
        )
        assert not ParamValidator().validate(found, shape).generate_report()


def test_cloudformation_takes_a_policy_with_alarms(world: World) -> None:
    app = world.app("validated", validated=True)
    stack = cdk.Stack(app, "Stack")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=PLATFORM)
    components = TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=2)
    component = components.add_component("Text", model=model, **COPY, copies=2, deployment_policy=POLICY)
    component.roll_back_on(busy(component))

    app.synth()


@pytest.mark.parametrize(
    ("batch", "named"),
    [(Capacity(instances=1), "copies"), (Capacity(4), "4 %"), (Capacity(51), "51 %")],
    ids=["instances", "4 %", "51 %"],
)
def test_a_batch_that_is_not_a_part_of_the_copies_is_rejected(
    messages: Messages, components: TritonComponents, text: TritonModel, batch: Capacity, named: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        policy = Rolling(batch=batch, wait=MINUTE)
        components.add_component("Text", model=text, **COPY, deployment_policy=policy)
    assert named in str(caught.value)

    components.add_component("Text", model=text, **COPY)  # nothing was left behind


def test_another_policy_is_rejected(messages: Messages, components: TritonComponents, text: TritonModel) -> None:
    canary: Any = Canary(size=Capacity(50), wait=MINUTE)
    with messages.raises(ConfigurationError):
        components.add_component("Text", model=text, **COPY, deployment_policy=canary)


def test_copies_are_no_part_of_an_endpoint_with_instances(
    messages: Messages, world: World, stack: cdk.Stack, text: TritonModel
) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=text, deployment_policy=POLICY)


# Alarms.


def busy(component: Any, scope: Any = None, id: str = "Busy") -> cloudwatch.Alarm:
    alarm: cloudwatch.Alarm = component.metric_invocations().create_alarm(
        scope or component, id, threshold=1, evaluation_periods=1
    )
    return alarm


def test_alarms_of_the_components_own_metrics_come_before_it(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=POLICY)

    component.roll_back_on(busy(component))

    (name,) = world.resources(stack, ALARM)  # Template.from_stack rejects a cycle
    assert deployment_config(world, stack)["AutoRollbackConfiguration"] == {"Alarms": [{"AlarmName": {"Ref": name}}]}
    (dimension,) = world.only(stack, ALARM)["Properties"]["Dimensions"]
    assert dimension["Value"] == world.only(stack, COMPONENT)["Properties"]["InferenceComponentName"]


def test_both_roles_may_look_at_the_alarms(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=POLICY)
    component.roll_back_on(busy(component))

    (name,) = world.resources(stack, ALARM)
    for role in ("ComponentsRole", "TextModelRole"):
        (statement,) = (each for each in world.statements(stack, role) if each["Action"] == "cloudwatch:DescribeAlarms")
        assert statement["Resource"] == {"Fn::GetAtt": [name, "Arn"]}


def test_an_alarm_is_named_once(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    outside = cloudwatch.Alarm.from_alarm_arn(stack, "Outside", "arn:aws:cloudwatch:us-east-1:111122223333:alarm:Out")
    policy = Rolling(batch=Capacity(50), wait=MINUTE, alarms=[outside])
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=policy)
    component.roll_back_on(outside)

    rollback = deployment_config(world, stack)["AutoRollbackConfiguration"]
    assert rollback == {"Alarms": [{"AlarmName": "Out"}]}


def test_a_metric_names_the_component_in_other_stacks_too(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    """The name contains the id of the component's stack, not of the alarm's."""
    component = components.add_component("Text", model=text, **COPY)
    other = cdk.Stack(cdk.Stage.of(stack), "Other", env=cdk.Environment(account=stack.account, region=stack.region))
    busy(component, other)

    (dimension,) = world.only(other, ALARM)["Properties"]["Dimensions"]
    assert "ImportValue" in str(dimension["Value"])


@pytest.mark.parametrize("attribute", ["component", "endpoint"])
def test_an_alarm_that_needs_the_component_or_its_endpoint_first_is_rejected(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel, attribute: str
) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=POLICY)
    value = component.component_name if attribute == "component" else components.endpoint_name
    metric = cloudwatch.Metric(namespace="Shop", metric_name="Orders", dimensions_map={"Of": value})
    with messages.raises(ConfigurationError):
        component.roll_back_on(metric.create_alarm(stack, "Orders", threshold=1, evaluation_periods=1))


def test_alarms_that_nobody_would_watch_are_rejected(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    without = components.add_component("Without", model=text, **COPY)
    with messages.raises(ConfigurationError):
        without.roll_back_on(busy(without))
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=POLICY)
    with messages.raises(ConfigurationError):
        component.roll_back_on()
    with messages.raises(ConfigurationError):
        component.roll_back_on(*(busy(component, id=f"Busy{number}") for number in range(11)))


# Warnings.


def check(messages: Messages, stack: cdk.Stack, *codes: str) -> None:
    found = warnings(stack)
    assert set(found) == set(codes)
    for code, text in found.items():
        messages.record(code, text)


def test_a_policy_that_goes_well_is_silent(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=4, deployment_policy=POLICY)
    component.roll_back_on(busy(component))
    check(messages, stack)


def test_one_copy_has_no_half(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY, deployment_policy=POLICY)
    component.roll_back_on(busy(component))
    check(messages, stack, "UpdateStep")


def test_a_scaled_component_may_have_one_copy(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = components.add_component("Text", model=text, **COPY, copies=2, deployment_policy=POLICY)
    component.roll_back_on(busy(component))
    component.scale_to_zero("Idle", max_capacity=4, max_requests_per_second=10)
    found = warnings(stack)
    assert "may be scaled to 1 copy" in found["UpdateStep"]


def test_waits_without_alarms_and_slow_alarms_are_warned_of(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    policy = Rolling(batch=Capacity(50), wait=MINUTE, rollback_batch=Capacity(50))
    components.add_component("Silent", model=text, **COPY, copies=2, deployment_policy=policy)
    slow = components.add_component("Slow", model=text, **COPY, copies=2, deployment_policy=policy)
    slow.roll_back_on(
        slow.metric_invocations(period=cdk.Duration.minutes(5)).create_alarm(
            slow, "Slow", threshold=1, evaluation_periods=1
        )
    )
    check(messages, stack, "UpdateWithoutAlarms", "RollbackAlarmTooSlow")


def test_a_large_batch_and_a_rollback_at_once_need_room(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    """Eight GPUs: six copies leave two, a batch of three needs three, and a rollback without a batch six."""
    policy = Rolling(batch=Capacity(50), wait=MINUTE)
    component = components.add_component("Text", model=text, **COPY, copies=6, deployment_policy=policy)
    component.roll_back_on(
        component.metric_invocations(period=cdk.Duration.seconds(10)).create_alarm(
            component, "Busy", threshold=1, evaluation_periods=1
        )
    )
    check(messages, stack, "CopiesWaitForInstances", "NoRoomForUpdate", "NoRoomForRollback")
    assert "max_instance_count to 3" in warnings(stack)["NoRoomForUpdate"]


def test_a_rollback_at_once_needs_more_room_than_the_update(
    messages: Messages, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    """Eight GPUs: seven copies in an update of six, and twelve in a rollback."""
    policy = Rolling(batch=Capacity(copies=1), wait=cdk.Duration.minutes(10))
    component = components.add_component("Text", model=text, **COPY, copies=6, deployment_policy=policy)
    component.roll_back_on(busy(component))
    check(messages, stack, "CopiesWaitForInstances", "NoRoomForRollback")
