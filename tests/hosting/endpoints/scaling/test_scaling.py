"""Scaling of variants: what the templates say, and what is warned of."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ServingPlatform, TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TARGET, POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"
FOUR_GPUS = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
RPS: dict[str, Any] = {"max_requests_per_second": 40}


def target_tracking(world: World, stack: cdk.Stack) -> dict[str, Any]:
    """What the only policy tracks."""
    properties = world.only(stack, POLICY)["Properties"]
    assert properties["PolicyType"] == "TargetTrackingScaling"
    return dict(properties["TargetTrackingScalingPolicyConfiguration"])


def on(world: World, stack: cdk.Stack, platform: ServingPlatform) -> ScalableInstanceCount:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    return TritonEndpoint(stack, "Endpoint", model=model).auto_scale_instance_count(min_capacity=1, max_capacity=2)


def warnings(stack: cdk.Stack, name: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"\[ack: cdk-triton:{name}\]"))
    return [str(message.entry.data) for message in found]


# The target.


def test_the_target_is_the_variants_instance_count(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    properties = world.only(stack, TARGET)["Properties"]
    assert properties == {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": {
            "Fn::Join": [
                "",
                ["endpoint/", {"Fn::GetAtt": ["EndpointEEF1FD8F", "EndpointName"]}, "/variant/AllTraffic"],
            ]
        },
        "MinCapacity": 1,
        "MaxCapacity": 8,
    }
    assert (count.min_capacity, count.max_capacity) == (1, 8)


def test_no_role_is_made_for_it(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    before = set(world.resources(stack, "AWS::IAM::Role"))
    assert before

    other = cdk.Stack(world.app("scaled"), "Stack")
    scaled = TritonModel(other, "Model", repository=world.repository_again("text"), platform=world.platform)
    count = TritonEndpoint(other, "Endpoint", model=scaled).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_invocations("Requests", **RPS)

    assert set(world.resources(other, "AWS::IAM::Role")) == before
    assert endpoint.variant().scalable_instance_count is None


@pytest.mark.parametrize("endpoint_name", [None, "mine"])
def test_it_is_created_after_and_removed_before_the_endpoint(
    world: World, stack: cdk.Stack, model: TritonModel, endpoint_name: str | None
) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=endpoint_name)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)

    assert "EndpointEEF1FD8F" in world.only(stack, TARGET)["DependsOn"]


def test_several_variants_scale_independently(
    messages: Messages, world: World, stack: cdk.Stack, model: TritonModel
) -> None:
    large = TritonModel(stack, "Large", repository=world.repository("large"), platform=FOUR_GPUS)
    endpoint = TritonEndpoint(
        stack,
        "Endpoint",
        variants=[TritonVariant(model=model, variant_name="Blue"), TritonVariant(model=large, variant_name="Green")],
    )
    for name, most in (("Blue", 4), ("Green", 2)):
        count = endpoint.variant(name).auto_scale_instance_count(min_capacity=1, max_capacity=most)
        count.scale_on_invocations("Requests", **RPS)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)

    limits = {
        properties["ResourceId"]["Fn::Join"][1][-1]: properties["MaxCapacity"]
        for properties in (resource["Properties"] for resource in world.resources(stack, TARGET).values())
    }
    assert limits == {"/variant/Blue": 4, "/variant/Green": 2}
    policies = [resource["Properties"] for resource in world.resources(stack, POLICY).values()]
    assert len({policy["PolicyName"] for policy in policies}) == 4
    gpu = [
        policy["TargetTrackingScalingPolicyConfiguration"]
        for policy in policies
        if "CustomizedMetricSpecification" in policy["TargetTrackingScalingPolicyConfiguration"]
    ]
    assert {each["CustomizedMetricSpecification"]["Dimensions"][1]["Value"]: each["TargetValue"] for each in gpu} == {
        "Blue": 60,
        "Green": 240,
    }
    with messages.raises(ConfigurationError):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)


def test_its_main_child_is_the_l1(count: ScalableInstanceCount, endpoint: TritonEndpoint) -> None:
    assert isinstance(count.node.default_child, autoscaling.CfnScalableTarget)
    assert count.node.path == "Stack/Endpoint/VariantAllTraffic/InstanceCount"
    assert endpoint.variant().scalable_instance_count is count


def test_an_update_of_the_endpoint_keeps_what_was_scaled_and_takes_new_weights(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    properties = world.only(stack, "AWS::SageMaker::Endpoint")["Properties"]
    assert properties["RetainAllVariantProperties"] is True
    assert properties["ExcludeRetainedVariantProperties"] == [{"VariantPropertyType": "DesiredWeight"}]


def test_an_endpoint_that_is_not_scaled_takes_its_counts_from_the_configuration(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint
) -> None:
    assert "RetainAllVariantProperties" not in world.only(stack, "AWS::SageMaker::Endpoint")["Properties"]


# What it follows.


def test_requests_per_second_become_a_target_per_minute(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_invocations("Requests", max_requests_per_second=40)

    assert target_tracking(world, stack) == {
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        "TargetValue": 1200,  # 40 * 0.5 * 60
        "ScaleInCooldown": 600,
        "ScaleOutCooldown": 300,
    }


def test_the_safety_factor_is_a_choice_and_leaves_no_binary_noise(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_invocations("Requests", max_requests_per_second=3, safety_factor=0.7)

    assert target_tracking(world, stack)["TargetValue"] == 126


def test_a_small_target_is_not_rounded_to_nothing(world: World, stack: cdk.Stack, count: ScalableInstanceCount) -> None:
    count.scale_on_invocations("Requests", max_requests_per_second=1e-9)

    assert target_tracking(world, stack)["TargetValue"] == 3e-8


def test_concurrent_requests_use_the_metric_of_high_resolution(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_concurrent_requests("Concurrency", target_concurrent_requests=4.5)

    tracked = target_tracking(world, stack)
    assert tracked["TargetValue"] == 4.5
    assert tracked["PredefinedMetricSpecification"] == {
        "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    }


@pytest.mark.parametrize(
    ("method", "metric", "instance_type", "target"),
    [
        ("scale_on_gpu_utilization", "GPUUtilization", "ml.g5.2xlarge", 60),
        ("scale_on_gpu_utilization", "GPUUtilization", "ml.g5.12xlarge", 240),
        ("scale_on_gpu_memory_utilization", "GPUMemoryUtilization", "ml.g5.48xlarge", 480),
        ("scale_on_cpu_utilization", "CPUUtilization", "ml.g4dn.xlarge", 240),
        ("scale_on_cpu_utilization", "CPUUtilization", "ml.g5.2xlarge", 480),
        ("scale_on_cpu_utilization", "CPUUtilization", "ml.p4d.24xlarge", 5760),
    ],
)
def test_a_percentage_is_of_one_gpu_or_vcpu_and_the_metric_their_sum(
    world: World, stack: cdk.Stack, method: str, metric: str, instance_type: str, target: int
) -> None:
    count = on(world, stack, ServingPlatform(release="25.09", instance_type=instance_type))
    getattr(count, method)("Policy", target_utilization_percent=60)

    assert target_tracking(world, stack) == {
        "CustomizedMetricSpecification": {
            "Namespace": "/aws/sagemaker/Endpoints",
            "MetricName": metric,
            "Dimensions": [
                {"Name": "EndpointName", "Value": {"Fn::GetAtt": ["EndpointEEF1FD8F", "EndpointName"]}},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            "Statistic": "Average",
            "Unit": "Percent",
        },
        "TargetValue": target,
        "ScaleInCooldown": 600,
        "ScaleOutCooldown": 300,
    }


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("scale_on_invocations", RPS),
        ("scale_on_concurrent_requests", {"target_concurrent_requests": 4}),
        ("scale_on_gpu_utilization", {"target_utilization_percent": 60}),
        ("scale_on_gpu_memory_utilization", {"target_utilization_percent": 60}),
        ("scale_on_cpu_utilization", {"target_utilization_percent": 60}),
    ],
)
def test_cooldowns_are_a_choice_and_zero_is_one(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount, method: str, arguments: dict[str, Any]
) -> None:
    policy = getattr(count, method)(
        "Policy", **arguments, scale_in_cooldown=cdk.Duration.minutes(20), scale_out_cooldown=cdk.Duration.seconds(0)
    )

    tracked = target_tracking(world, stack)
    assert (tracked["ScaleInCooldown"], tracked["ScaleOutCooldown"]) == (1200, 0)
    assert isinstance(policy, autoscaling.TargetTrackingScalingPolicy)


def test_several_policies_stand_beside_each_other(
    messages: Messages, world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_invocations("Requests", **RPS)
    count.scale_on_concurrent_requests("Concurrency", target_concurrent_requests=4)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)

    assert len(world.resources(stack, POLICY)) == 3
    with messages.raises(ConfigurationError):
        count.scale_on_gpu_utilization("Again", target_utilization_percent=70)


def test_gpu_memory_is_warned_of_as_a_signal_of_a_fleet(messages: Messages, world: World, stack: cdk.Stack) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository("text")}, platform=world.platform)
    count = TritonEndpoint(stack, "Endpoint", model=fleet).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_gpu_memory_utilization("Memory", target_utilization_percent=80)

    (warning,) = warnings(stack, "GpuMemoryOfMultiModel")
    messages.record("cdk-triton:GpuMemoryOfMultiModel", warning)


def test_gpu_memory_of_one_model_is_not_warned_of(stack: cdk.Stack, count: ScalableInstanceCount) -> None:
    count.scale_on_gpu_memory_utilization("Memory", target_utilization_percent=80)

    assert not warnings(stack, "GpuMemoryOfMultiModel")


def test_a_target_that_cannot_be_exceeded_is_warned_of(
    messages: Messages, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=99)
    assert not warnings(stack, "NeverScalesOut")

    count.scale_on_cpu_utilization("Cpu", target_utilization_percent=100)
    (warning,) = warnings(stack, "NeverScalesOut")
    messages.record("cdk-triton:NeverScalesOut", warning)


def test_limits_that_nothing_makes_use_of_are_warned_of(
    messages: Messages, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    (warning,) = warnings(stack, "NothingScales")
    messages.record("cdk-triton:NothingScales", warning)


def test_equal_limits_are_a_fixed_number(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=1)
    assert not warnings(stack, "NothingScales")


@pytest.mark.parametrize("by", ["policy", "steps", "schedule", "policy of the CDK's construct"])
def test_limits_that_are_made_use_of_are_not(stack: cdk.Stack, count: ScalableInstanceCount, by: str) -> None:
    metric = cloudwatch.Metric(namespace="Own", metric_name="Load")
    match by:
        case "policy":
            count.scale_on_invocations("Requests", **RPS)
        case "steps":
            down, up = autoscaling.ScalingInterval(change=-1, upper=10), autoscaling.ScalingInterval(change=1, lower=50)
            count.scale_on_metric("Steps", metric=metric, scaling_steps=[down, up])
        case "schedule":
            count.scale_on_schedule("X", schedule=autoscaling.Schedule.expression("cron(0 7 * * ? *)"), min_capacity=2)
        case _:
            count.scalable_target.scale_to_track_metric("Own", custom_metric=metric, target_value=3)

    assert not warnings(stack, "NothingScales")


def test_cloudformation_and_its_linter_take_every_kind(world: World) -> None:
    app = world.app("linted", validated=True)
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="123456789012", region="us-east-1"))
    count = on(world, stack, world.platform)
    count.scale_on_invocations("Requests", **RPS)
    count.scale_on_concurrent_requests("Concurrency", target_concurrent_requests=4)
    for name in ("gpu", "gpu_memory", "cpu"):
        getattr(count, f"scale_on_{name}_utilization")(name, target_utilization_percent=60)
    count.scale_on_metric(
        "Steps",
        metric=cloudwatch.Metric(namespace="Own", metric_name="Load"),
        scaling_steps=[
            autoscaling.ScalingInterval(change=-1, upper=10),
            autoscaling.ScalingInterval(change=1, lower=50),
        ],
    )
    zone = cdk.TimeZone.ASIA_TOKYO
    count.scale_on_schedule(
        "X", schedule=autoscaling.Schedule.cron(hour="7", minute="0"), min_capacity=2, time_zone=zone
    )

    app.synth()  # raises what CDK's validation finds
    template = Path(app.outdir) / "Stack.template.json"
    # W3005: a DependsOn that a reference makes redundant, which CDK writes wherever both were asked for.
    linted = subprocess.run(
        [world.root / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", template],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (linted.returncode, linted.stdout) == (0, "")
