"""Limits and targets of scaling that cannot be meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton import TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
RPS: dict[str, Any] = {"max_requests_per_second": 40}


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ((2, 1), "max_capacity"),
        ((0, 4), "min_capacity"),
        ((-1, 4), "min_capacity"),
        ((1, 1.5), "max_capacity"),
        ((True, 4), "min_capacity"),
        ((1, "4"), "max_capacity"),
        ((1, float("inf")), "max_capacity"),
        ((1, 2**31), "1 to 2,147,483,647"),
        ((1, 2**2000), "1 to 2,147,483,647"),
        ((2, 4), "initial_instance_count"),
    ],
    ids=[
        "2 to 1",
        "0 to 4",
        "-1 to 4",
        "1 to 1.5",
        "True to 4",
        "1 to text",
        "1 to inf",
        "1 to 2^31",
        "1 to 2^2000",
        "2 to 4",
    ],
)
def test_limits_that_cannot_be_meant_are_rejected(
    messages: Messages, endpoint: TritonEndpoint, limits: tuple[Any, Any], named: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        endpoint.auto_scale_instance_count(min_capacity=limits[0], max_capacity=limits[1])
    assert named in str(caught.value)

    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=1)  # what was refused left nothing behind


def test_an_initial_count_above_the_maximum_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel
) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model, initial_instance_count=5)])
    with messages.raises(ConfigurationError):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)


def test_a_variant_is_scaled_once(messages: Messages, endpoint: TritonEndpoint, count: ScalableInstanceCount) -> None:
    with messages.raises(ConfigurationError):
        endpoint.variant("AllTraffic").auto_scale_instance_count(min_capacity=1, max_capacity=2)


def test_limits_may_be_tokens(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    most = cdk.CfnParameter(stack, "Most", type="Number").value_as_number
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=most)  # type: ignore[arg-type]
    count.scale_on_schedule("X", schedule=autoscaling.Schedule.cron(hour="7", minute="0"), min_capacity=4)

    assert world.only(stack, TARGET)["Properties"]["MaxCapacity"] == {"Ref": "Most"}


@pytest.mark.parametrize(
    ("method", "argument", "value", "suggested"),
    [
        pytest.param("scale_on_invocations", "max_requests_per_second", 0, "", id="no request"),
        pytest.param("scale_on_invocations", "max_requests_per_second", float("nan"), "", id="no number of requests"),
        pytest.param("scale_on_invocations", "max_requests_per_second", True, "", id="a truth value"),
        pytest.param("scale_on_invocations", "max_requests_per_second", 2**2000, "", id="no double"),
        pytest.param("scale_on_invocations", "safety_factor", 1.1, "", id="a factor above 1"),
        pytest.param("scale_on_invocations", "safety_factor", 0, "", id="no factor"),
        pytest.param("scale_on_concurrent_requests", "target_concurrent_requests", -1, "", id="negative"),
        pytest.param("scale_on_gpu_utilization", "target_utilization_percent", 101, "", id="101 percent"),
        pytest.param("scale_on_gpu_utilization", "target_utilization_percent", 0.6, " 60", id="a share"),
        pytest.param("scale_on_gpu_memory_utilization", "target_utilization_percent", 240, "", id="a sum"),
        pytest.param("scale_on_cpu_utilization", "target_utilization_percent", "60", "", id="text"),
    ],
)
def test_targets_that_cannot_be_meant_are_rejected(
    messages: Messages, count: ScalableInstanceCount, method: str, argument: str, value: Any, suggested: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        getattr(count, method)("X", **(RPS if argument == "safety_factor" else {}), **{argument: value})
    assert argument in str(caught.value)
    assert suggested in str(caught.value)


@pytest.mark.parametrize("rate", [1e308, 1e-300], ids=["much", "little"])
def test_targets_that_application_auto_scaling_does_not_take_are_rejected(
    messages: Messages, count: ScalableInstanceCount, rate: float
) -> None:
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("X", max_requests_per_second=rate)


def test_a_cooldown_has_whole_seconds(messages: Messages, count: ScalableInstanceCount) -> None:
    steps = [autoscaling.ScalingInterval(upper=1, change=-1), autoscaling.ScalingInterval(lower=3, change=1)]
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("X", **RPS, scale_in_cooldown=cdk.Duration.millis(1500))
    with messages.raises(ConfigurationError):
        count.scale_on_metric(
            "X",
            metric=cloudwatch.Metric(namespace="Own", metric_name="M"),
            scaling_steps=steps,
            scale_out_cooldown=cdk.Duration.millis(1500),
        )
    count.scale_on_invocations("X", **RPS)  # nothing was left behind


def test_a_policy_has_a_name(messages: Messages, count: ScalableInstanceCount) -> None:
    with messages.raises(ConfigurationError):
        count.scale_on_invocations("", **RPS)
    with pytest.raises(ConfigurationError) as caught:
        count.scale_on_invocations(cdk.Aws.STACK_NAME, **RPS)
    messages.record("ConfigurationError", re.sub(r"[.]\d+]", ".N]", str(caught.value)))


def test_two_policies_have_two_names(messages: Messages, count: ScalableInstanceCount) -> None:
    count.scale_on_invocations("X", **RPS)
    with messages.raises(ConfigurationError):
        count.scale_on_gpu_utilization("X", target_utilization_percent=60)
    steps = [autoscaling.ScalingInterval(upper=1, change=-1), autoscaling.ScalingInterval(lower=3, change=1)]
    with messages.raises(ConfigurationError):
        count.scale_on_metric("X", metric=cloudwatch.Metric(namespace="Own", metric_name="M"), scaling_steps=steps)


def test_a_target_that_is_computed_is_no_token(
    messages: Messages, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    percent = cdk.CfnParameter(stack, "Percent", type="Number").value_as_number
    with messages.raises(ConfigurationError) as caught:
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=percent)
    assert "target_utilization_percent" in str(caught.value)
