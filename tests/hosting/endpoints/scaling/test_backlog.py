"""Asynchronous endpoints follow their queue, down to zero instances and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk.assertions import Annotations, Match

from cdk_triton import AsyncInference, ScalableInstanceCount, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

POLICY, ALARM = "AWS::ApplicationAutoScaling::ScalingPolicy", "AWS::CloudWatch::Alarm"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


@pytest.fixture(name="queued")
def _queued(stack: cdk.Stack, model: TritonModel) -> TritonEndpoint:
    return TritonEndpoint(stack, "Queued", model=model, asynchronous=AsyncInference())


@pytest.fixture(name="from_zero")
def _from_zero(queued: TritonEndpoint) -> ScalableInstanceCount:
    return queued.auto_scale_instance_count(min_capacity=0, max_capacity=4)


def policies(world: World, stack: cdk.Stack) -> dict[str, dict[str, Any]]:
    """Type to properties."""
    return {each["Properties"]["PolicyType"]: each["Properties"] for each in world.resources(stack, POLICY).values()}


def warnings(stack: cdk.Stack, code: str = "StaysAtZero") -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"{code}\]"))
    return [str(each.entry.data) for each in found]


def test_the_numbers_are_those_of_the_developer_guide(
    world: World, stack: cdk.Stack, queued: TritonEndpoint, from_zero: ScalableInstanceCount
) -> None:
    from_zero.scale_on_backlog("Backlog", target_backlog_per_instance=5)

    name = [{"Name": "EndpointName", "Value": stack.resolve(queued.endpoint_name)}]
    found = policies(world, stack)
    tracking = found["TargetTrackingScaling"]["TargetTrackingScalingPolicyConfiguration"]
    assert (tracking["TargetValue"], tracking["CustomizedMetricSpecification"]) == (
        5,
        {
            "MetricName": "ApproximateBacklogSizePerInstance",
            "Namespace": "AWS/SageMaker",
            "Dimensions": name,
            "Statistic": "Average",
        },
    )
    assert found["StepScaling"]["StepScalingPolicyConfiguration"] == {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 300,
        "MetricAggregationType": "Average",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    }
    alarm = world.only(stack, ALARM)["Properties"]
    (step,) = (n for n, each in world.resources(stack, POLICY).items() if each["Properties"]["PolicyType"][0] == "S")
    assert alarm.pop("AlarmDescription")
    assert alarm == {
        "AlarmActions": [{"Ref": step}],
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "DatapointsToAlarm": 2,
        "Dimensions": name,
        "EvaluationPeriods": 2,
        "MetricName": "HasBacklogWithoutCapacity",
        "Namespace": "AWS/SageMaker",
        "Period": 60,
        "Statistic": "Average",
        "Threshold": 1,
        "TreatMissingData": "missing",
    }
    assert world.only(stack, TARGET)["Properties"]["MinCapacity"] == 0
    assert warnings(stack) == []


def test_with_an_instance_at_least_there_is_no_policy_for_the_first(
    world: World, stack: cdk.Stack, queued: TritonEndpoint
) -> None:
    count = queued.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)

    assert list(policies(world, stack)) == ["TargetTrackingScaling"]
    assert world.resources(stack, ALARM) == {}


def test_the_configuration_begins_with_an_instance(
    world: World, stack: cdk.Stack, from_zero: ScalableInstanceCount
) -> None:
    from_zero.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    (variant,) = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]
    assert variant["InitialInstanceCount"] == 1  # CreateEndpointConfig takes 1 or more


def test_a_minimum_of_zero_that_nothing_grows_from_is_warned_of(
    messages: Messages, stack: cdk.Stack, from_zero: ScalableInstanceCount
) -> None:
    from_zero.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    (warning,) = warnings(stack)
    messages.record("cdk-triton:StaysAtZero", warning)


@pytest.mark.parametrize("metric", ["INVOCATIONS_PER_INSTANCE", "CONCURRENT_REQUESTS_PER_MODEL_HIGH_RESOLUTION"])
def test_a_metric_that_is_not_published_scales_nothing(
    messages: Messages, stack: cdk.Stack, queued: TritonEndpoint, metric: str
) -> None:
    count = queued.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    predefined = getattr(autoscaling.PredefinedMetric, f"SAGEMAKER_VARIANT_{metric}")
    count.scalable_target.scale_to_track_metric("Own", predefined_metric=predefined, target_value=4)
    (warning,) = warnings(stack, "NothingScales")
    messages.record("cdk-triton:NothingScales", warning)


def test_a_minimum_that_only_the_deployment_knows_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel
) -> None:
    endpoint = TritonEndpoint(stack, "Queued", model=model, asynchronous=AsyncInference())
    least: Any = cdk.CfnParameter(stack, "Least", type="Number").value_as_number
    with messages.raises(ConfigurationError):
        endpoint.auto_scale_instance_count(min_capacity=least, max_capacity=2)


def test_metrics_that_are_not_published_are_rejected(messages: Messages, from_zero: ScalableInstanceCount) -> None:
    with messages.raises(ConfigurationError):
        from_zero.scale_on_invocations("Requests", max_requests_per_second=40)
    with messages.raises(ConfigurationError):
        from_zero.scale_on_concurrent_requests("Requests", target_concurrent_requests=2)


def test_a_real_time_endpoint_has_no_backlog(messages: Messages, count: ScalableInstanceCount) -> None:
    with messages.raises(ConfigurationError):
        count.scale_on_backlog("Backlog", target_backlog_per_instance=5)


@pytest.mark.parametrize("target", [0, -1, float("nan"), "5"], ids=["0", "-1", "NaN", "text"])
def test_targets_that_cannot_be_meant_are_rejected(
    messages: Messages, from_zero: ScalableInstanceCount, target: Any
) -> None:
    with messages.raises(ConfigurationError) as caught:
        from_zero.scale_on_backlog("Backlog", target_backlog_per_instance=target)
    assert "target_backlog_per_instance" in str(caught.value)


def test_the_backlog_is_followed_once(messages: Messages, from_zero: ScalableInstanceCount) -> None:
    from_zero.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    with messages.raises(ConfigurationError):
        from_zero.scale_on_backlog("Again", target_backlog_per_instance=5)


def test_limits_below_zero_are_rejected(messages: Messages, queued: TritonEndpoint) -> None:
    with messages.raises(ConfigurationError):
        queued.auto_scale_instance_count(min_capacity=-1, max_capacity=4)
    with messages.raises(ConfigurationError):
        queued.auto_scale_instance_count(min_capacity=0, max_capacity=0)


@pytest.mark.parametrize("least", [0, 1])
def test_a_schedule_may_go_to_zero_if_the_minimum_is_zero(
    messages: Messages, world: World, stack: cdk.Stack, queued: TritonEndpoint, least: int
) -> None:
    count = queued.auto_scale_instance_count(min_capacity=least, max_capacity=4)
    evening = autoscaling.Schedule.cron(hour="19", minute="0")
    if least == 1:
        with messages.raises(ConfigurationError):
            count.scale_on_schedule("Evening", schedule=evening, min_capacity=0)
        return
    count.scale_on_schedule("Evening", schedule=evening, min_capacity=0)
    (action,) = world.only(stack, TARGET)["Properties"]["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 0}
