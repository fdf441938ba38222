"""Scaling a variant with instance pools: one value for instance types that differ in GPUs and vCPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


def on(world: World, stack: cdk.Stack, *instance_types: str) -> ScalableInstanceCount:
    first, *others = (
        TritonModel(
            stack,
            each.replace(".", ""),
            repository=world.repository(),
            platform=ServingPlatform(release="25.09", instance_type=each),
        )
        for each in instance_types
    )
    variant = TritonVariant(model=first, fallback_models=others)
    endpoint = TritonEndpoint(stack, "Endpoint", variants=[variant])
    return endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)


def tracked(world: World, stack: cdk.Stack) -> tuple[float, dict[str, Any]]:
    """The target and the metric of the only policy."""
    configuration = world.only(stack, POLICY)["Properties"]["TargetTrackingScalingPolicyConfiguration"]
    assert (configuration["ScaleInCooldown"], configuration["ScaleOutCooldown"]) == (600, 300)
    return configuration["TargetValue"], configuration["CustomizedMetricSpecification"]


def test_types_with_as_many_of_the_same_gpu_are_averaged_by_sagemaker(world: World, stack: cdk.Stack) -> None:
    on(world, stack, "ml.g5.12xlarge", "ml.g5.24xlarge").scale_on_gpu_utilization("Gpu", target_utilization_percent=60)

    target, metric = tracked(world, stack)
    assert target == 240
    assert metric["MetricName"] == "GPUUtilization"
    assert [each["Name"] for each in metric["Dimensions"]] == ["EndpointName", "VariantName"]


def test_types_with_other_gpus_count_alike(world: World, stack: cdk.Stack) -> None:
    on(world, stack, "ml.g5.xlarge", "ml.g4dn.xlarge").scale_on_gpu_utilization("Gpu", target_utilization_percent=60)

    target, specification = tracked(world, stack)
    assert target == 60
    assert "FILL(m0, 0) / 1 + FILL(m1, 0) / 1" in specification["Metrics"][-1]["Expression"]


@pytest.mark.parametrize(
    ("method", "name", "units"),
    [
        ("scale_on_gpu_utilization", "GPUUtilization", (4, 1, 1)),
        ("scale_on_gpu_memory_utilization", "GPUMemoryUtilization", (4, 1, 1)),
        ("scale_on_cpu_utilization", "CPUUtilization", (48, 8, 4)),
    ],
)
def test_types_with_different_units_count_alike_where_they_have_instances(
    world: World, stack: cdk.Stack, method: str, name: str, units: tuple[int, ...]
) -> None:
    types = ("ml.g5.12xlarge", "ml.g6.2xlarge", "ml.g4dn.xlarge")
    getattr(on(world, stack, *types), method)("Policy", target_utilization_percent=60)

    target, specification = tracked(world, stack)
    *metrics, mean = specification["Metrics"]
    assert target == 60
    assert specification.keys() == {"Metrics"}
    assert [each["ReturnData"] for each in (*metrics, mean)] == [False, False, False, True]
    for each, instance_type in zip(metrics, types, strict=True):
        stat = each["MetricStat"]
        dimensions = {one["Name"]: one["Value"] for one in stat["Metric"]["Dimensions"]}
        assert (stat["Metric"]["MetricName"], stat["Stat"]) == (name, "Average")
        assert dimensions["InstanceType"] == instance_type
        assert dimensions.keys() == {"EndpointName", "VariantName", "InstanceType"}
    assert mean["Expression"] == (
        f"(FILL(m0, 0) / {units[0]} + FILL(m1, 0) / {units[1]} + FILL(m2, 0) / {units[2]}) / "
        "(IF(FILL(m0, -1) < 0, 0, 1) + IF(FILL(m1, -1) < 0, 0, 1) + IF(FILL(m2, -1) < 0, 0, 1))"
    )


def test_other_metrics_are_those_of_all_instances(world: World, stack: cdk.Stack) -> None:
    count = on(world, stack, "ml.g5.12xlarge", "ml.g4dn.xlarge")
    count.scale_on_invocations("Requests", max_requests_per_second=40)

    policy = world.only(stack, POLICY)["Properties"]["TargetTrackingScalingPolicyConfiguration"]
    assert policy["TargetValue"] == 1200
    assert policy["PredefinedMetricSpecification"] == {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
