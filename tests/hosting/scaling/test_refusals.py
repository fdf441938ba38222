"""Limits and targets of scaling that cannot be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
RPS: dict[str, Any] = {"max_requests_per_second": 40}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((2, 1), "variant AllTraffic of Stack/Endpoint would scale between min_capacity 2 and max_capacity 1"),
        (
            (0, 4),
            "min_capacity of variant AllTraffic of .* is 0: .* at least 1; a real-time variant with a model does not",
        ),
        ((-1, 4), "min_capacity of variant AllTraffic of Stack/Endpoint is -1"),
        ((1, 1.5), "max_capacity of variant AllTraffic of Stack/Endpoint is 1.5: use a whole number of instances"),
        ((True, 4), "min_capacity of variant AllTraffic of Stack/Endpoint is True"),
        ((1, "4"), "max_capacity of variant AllTraffic of Stack/Endpoint is '4': use .* instances, at least 1$"),
        ((1, float("inf")), "max_capacity of variant AllTraffic of Stack/Endpoint is inf"),
        (
            (2, 4),
            "variant AllTraffic of .* begins with an initial_instance_count of 1 and scales between 2 and 4: begin",
        ),
    ],
    ids=str,
)
def test_limits_that_cannot_be_meant_are_refused(
    endpoint: TritonEndpoint, limits: tuple[Any, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        endpoint.auto_scale_instance_count(min_capacity=limits[0], max_capacity=limits[1])

    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=1)  # what was refused left nothing behind


def test_an_initial_count_above_the_maximum_is_refused(stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model, initial_instance_count=5)])
    with pytest.raises(ConfigurationError, match="initial_instance_count of 5 and scales between 1 and 4"):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)


def test_a_variant_is_scaled_once(endpoint: TritonEndpoint, count: ScalableInstanceCount) -> None:
    with pytest.raises(ConfigurationError, match="variant AllTraffic of Stack/Endpoint is scaled already: add pol"):
        endpoint.variant("AllTraffic").auto_scale_instance_count(min_capacity=1, max_capacity=2)


def test_limits_may_be_tokens(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    most = cdk.CfnParameter(stack, "Most", type="Number").value_as_number
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=most)  # type: ignore[arg-type]
    count.scale_on_schedule("X", schedule=autoscaling.Schedule.cron(hour="7", minute="0"), min_capacity=4)

    assert world.only(stack, TARGET)["Properties"]["MaxCapacity"] == {"Ref": "Most"}


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (
            "scale_on_invocations",
            {"max_requests_per_second": 0},
            "max_requests_per_second of .* is 0: use a positive nu",
        ),
        ("scale_on_invocations", {"max_requests_per_second": float("nan")}, "max_requests_per_second of .* is nan"),
        ("scale_on_invocations", {"max_requests_per_second": True}, "max_requests_per_second of .* is True"),
        (
            "scale_on_invocations",
            {**RPS, "safety_factor": 1.1},
            "safety_factor of .* is 1.1: use a number above 0 and at",
        ),
        ("scale_on_invocations", {**RPS, "safety_factor": 0}, "safety_factor of .* is 0"),
        ("scale_on_concurrent_requests", {"target_concurrent_requests": -1}, "target_concurrent_requests of .* is -1"),
        (
            "scale_on_gpu_utilization",
            {"target_utilization_percent": 101},
            "target_utilization_percent of policy 'X' of variant AllTraffic of Stack/Endpoint is 101: use a number "
            "above 0 and at most 100",
        ),
        ("scale_on_gpu_utilization", {"target_utilization_percent": 0.6}, "is 0.6, less than one percent: write 60"),
        ("scale_on_gpu_memory_utilization", {"target_utilization_percent": 240}, "is 240"),
        ("scale_on_cpu_utilization", {"target_utilization_percent": "60"}, "is '60': .* so give a number"),
    ],
)
def test_targets_that_cannot_be_meant_are_refused(
    count: ScalableInstanceCount, method: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        getattr(count, method)("X", **arguments)


def test_a_target_that_is_computed_is_no_token(stack: cdk.Stack, count: ScalableInstanceCount) -> None:
    percent = cdk.CfnParameter(stack, "Percent", type="Number").value_as_number
    with pytest.raises(ConfigurationError) as caught:
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=percent)
    assert str(caught.value) == (
        "target_utilization_percent of policy 'Gpu' of variant AllTraffic of Stack/Endpoint is a CDK token, but the "
        "target is computed from it: write the number out"
    )


def test_an_unknown_number_of_gpus_is_said(world: World, stack: cdk.Stack) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g7.12xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    count = TritonEndpoint(stack, "Endpoint", model=model).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(ConfigurationError, match=r"the number of GPUs of ml\.g7\.12xlarge is in none"):
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
