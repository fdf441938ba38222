"""Scaling on the local AWS: what a stack asks for is what Application Auto Scaling's API tells afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from botocore.exceptions import ClientError
from tests.local_aws.models import Model

from cdk_triton import TritonEndpoint, TritonVariant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.local_aws.conftest import Deployer, Rejected

    from cdk_triton_local.aws import LocalAws
    from golden_messages import Messages

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
NAMES = {"ServiceNamespace": "sagemaker", "ScalableDimension": DIMENSION}


class Scaling:
    """What the API tells of the endpoint `e`."""

    def __init__(self, aws: LocalAws) -> None:
        self.client = aws.client("application-autoscaling")

    def target(self, variant: str) -> dict[str, Any]:
        (target,) = self.client.describe_scalable_targets(**NAMES, ResourceIds=[resource(variant)])["ScalableTargets"]
        return dict(target)

    def policies(self, variant: str) -> list[dict[str, Any]]:
        return list(self.client.describe_scaling_policies(**NAMES, ResourceId=resource(variant))["ScalingPolicies"])

    def actions(self, variant: str) -> list[dict[str, Any]]:
        found = self.client.describe_scheduled_actions(**NAMES, ResourceId=resource(variant))["ScheduledActions"]
        return [
            {name: action.get(name) for name in ("ScheduledActionName", "Schedule", "Timezone", "ScalableTargetAction")}
            for action in found
        ]

    def all(self) -> list[Any]:
        return [
            *self.client.describe_scalable_targets(**NAMES)["ScalableTargets"],
            *self.client.describe_scaling_policies(**NAMES)["ScalingPolicies"],
            *self.client.describe_scheduled_actions(**NAMES)["ScheduledActions"],
        ]


def resource(variant: str) -> str:
    return f"endpoint/e/variant/{variant}"


@pytest.fixture(name="scaling", scope="module")
def _scaling(local_aws: LocalAws) -> Scaling:
    return Scaling(local_aws)


@pytest.fixture(name="unscaled", scope="module")
def _unscaled(local_aws: LocalAws) -> str:
    """A variant that is not registered."""
    sagemaker = local_aws.client("sagemaker")
    container = {"Image": "triton", "ModelDataUrl": "s3://models/model.tar.gz"}
    role = f"arn:aws:iam::{local_aws.account}:role/r"
    sagemaker.create_model(ModelName="unscaled", ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {"VariantName": "v", "ModelName": "unscaled", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName="unscaled", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="unscaled", EndpointConfigName="unscaled")
    return "endpoint/unscaled/variant/v"


# What the constructs ask for.


def template(directory: Path) -> dict[str, Any]:
    """An endpoint with a variant that has a policy of every kind, and one whose name begins like the other's."""
    app = cdk.App(outdir=str(directory), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Scaled")
    model = Model(stack, "Model")
    variants = [TritonVariant(model=model, variant_name="Green"), TritonVariant(model=model, variant_name="Green2")]
    endpoint = TritonEndpoint(stack, "Endpoint", variants=variants, endpoint_name="e")
    count = endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=8)
    count.scale_on_invocations("Requests", max_requests_per_second=40)
    count.scale_on_concurrent_requests("Concurrency", target_concurrent_requests=4)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    count.scale_on_gpu_memory_utilization("GpuMemory", target_utilization_percent=80)
    count.scale_on_cpu_utilization("Cpu", target_utilization_percent=50, scale_in_cooldown=cdk.Duration.minutes(15))
    count.scale_on_metric(
        "Latency",
        metric=endpoint.variant("Green").metric("ModelLatency", statistic="p95"),
        scaling_steps=[
            autoscaling.ScalingInterval(change=-1, upper=10_000),
            autoscaling.ScalingInterval(change=2, lower=80_000),
        ],
    )
    morning = autoscaling.Schedule.cron(hour="7", minute="30")
    count.scale_on_schedule("Morning", schedule=morning, min_capacity=4, time_zone=cdk.TimeZone.EUROPE_BERLIN)
    count.scale_on_schedule("Night", schedule=autoscaling.Schedule.cron(hour="20", minute="0"), min_capacity=1)
    other = endpoint.variant("Green2").auto_scale_instance_count(min_capacity=1, max_capacity=2)
    other.scale_on_invocations("Requests", max_requests_per_second=10)
    document = json.loads((directory / app.synth().get_stack_by_name("Scaled").template_file).read_text())
    return {"Resources": document["Resources"]}


@pytest.fixture(name="deployed", scope="module")
def _deployed(tmp_path_factory: pytest.TempPathFactory, deployer: Deployer) -> Any:
    document = template(tmp_path_factory.mktemp("scaled"))
    assert deployer.deploy(document, "scaled") == "CREATE_COMPLETE"
    yield document
    assert deployer.delete("scaled") == "DELETE_COMPLETE"
    assert Scaling(deployer.aws).all() == []


@pytest.mark.usefixtures("deployed")
def test_each_variant_is_a_target_with_its_limits(scaling: Scaling) -> None:
    green = scaling.target("Green")
    assert (green["MinCapacity"], green["MaxCapacity"]) == (1, 8)
    assert green["RoleARN"].endswith("/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint")
    assert scaling.target("Green2")["MaxCapacity"] == 2


@pytest.mark.usefixtures("deployed")
def test_target_tracking_is_stored_as_it_was_asked_for(scaling: Scaling) -> None:
    tracked = [
        policy["TargetTrackingScalingPolicyConfiguration"]
        for policy in scaling.policies("Green")
        if policy["PolicyType"] == "TargetTrackingScaling"
    ]
    predefined = {
        each["PredefinedMetricSpecification"]["PredefinedMetricType"]: each["TargetValue"]
        for each in tracked
        if "PredefinedMetricSpecification" in each
    }
    assert predefined == {
        "SageMakerVariantInvocationsPerInstance": 1200,
        "SageMakerVariantConcurrentRequestsPerModelHighResolution": 4,
    }
    custom = {
        each["CustomizedMetricSpecification"]["MetricName"]: (each["TargetValue"], each["ScaleInCooldown"])
        for each in tracked
        if "CustomizedMetricSpecification" in each
    }
    # Four GPUs and 48 vCPUs.
    assert custom == {"GPUUtilization": (240, 600), "GPUMemoryUtilization": (320, 600), "CPUUtilization": (2400, 900)}
    gpu = next(e["CustomizedMetricSpecification"] for e in tracked if e["TargetValue"] == 240)
    assert gpu["Namespace"] == "/aws/sagemaker/Endpoints"
    assert gpu["Dimensions"] == [
        {"Name": "EndpointName", "Value": "e"},
        {"Name": "VariantName", "Value": "Green"},
    ]


@pytest.mark.usefixtures("deployed")
def test_steps_are_stored_with_the_alarms_that_take_them(scaling: Scaling, local_aws: LocalAws) -> None:
    steps = [policy for policy in scaling.policies("Green") if policy["PolicyType"] == "StepScaling"]
    stored = {
        step["StepScalingPolicyConfiguration"]["Cooldown"]: step["StepScalingPolicyConfiguration"]["StepAdjustments"]
        for step in steps
    }
    assert stored == {
        600: [{"MetricIntervalUpperBound": 0, "ScalingAdjustment": -1}],
        300: [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 2}],
    }
    alarms = local_aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert {alarm["Threshold"]: alarm["AlarmActions"] for alarm in alarms} == {
        threshold: [step["PolicyARN"]]
        for step in steps
        for threshold in [10_000 if step["StepScalingPolicyConfiguration"]["Cooldown"] == 600 else 80_000]
    }


@pytest.mark.usefixtures("deployed")
def test_schedules_are_stored_with_their_time_zone(scaling: Scaling) -> None:
    assert scaling.actions("Green") == [
        {
            "ScheduledActionName": "Morning",
            "Schedule": "cron(30 7 * * ? *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 4},
        },
        {
            "ScheduledActionName": "Night",
            "Schedule": "cron(0 20 * * ? *)",
            "Timezone": None,
            "ScalableTargetAction": {"MinCapacity": 1},
        },
    ]
    assert scaling.actions("Green2") == []


@pytest.mark.usefixtures("deployed")
def test_policies_are_told_apart_by_variant(scaling: Scaling) -> None:
    assert len(scaling.policies("Green")) == 7
    (only,) = scaling.policies("Green2")
    assert only["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 300


def test_scaling_goes_before_the_endpoint_and_comes_after_it(deployed: dict[str, Any], deployer: Deployer) -> None:
    completed = [event.split()[0] for event in deployer.events("scaled") if event.endswith("CREATE_COMPLETE")]
    kinds = [deployed["Resources"][name]["Type"] for name in completed if name != "-"]
    endpoint = kinds.index("AWS::SageMaker::Endpoint")
    assert endpoint < kinds.index("AWS::ApplicationAutoScaling::ScalableTarget")


def test_an_update_changes_limits_policies_and_schedules_in_place(
    deployed: dict[str, Any], deployer: Deployer, scaling: Scaling
) -> None:
    before = {policy["PolicyName"]: policy["PolicyARN"] for policy in scaling.policies("Green2")}
    changed = json.loads(json.dumps(deployed))
    for each in changed["Resources"].values():
        properties = each.get("Properties", {})
        if each["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget" and "ScheduledActions" in properties:
            properties["MaxCapacity"] = 6
            morning = properties["ScheduledActions"][0]
            del morning["Timezone"]
            properties["ScheduledActions"] = [morning]
        tracking = properties.get("TargetTrackingScalingPolicyConfiguration", {})
        if tracking.get("TargetValue") == 300:
            tracking["TargetValue"] = 150
    deployer.aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="e", DesiredWeightsAndCapacities=[{"VariantName": "Green", "DesiredInstanceCount": 7}]
    )
    assert deployer.deploy(changed, "scaled") == "UPDATE_COMPLETE"

    assert scaling.target("Green")["MaxCapacity"] == 6
    assert counts(deployer) == {"Green": 6, "Green2": 1}
    assert [(a["ScheduledActionName"], a["Timezone"]) for a in scaling.actions("Green")] == [("Morning", None)]
    (policy,) = scaling.policies("Green2")
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 150
    assert {policy["PolicyName"]: policy["PolicyARN"]} == before

    assert deployer.deploy(deployed, "scaled") == "UPDATE_COMPLETE"
    assert [a["ScheduledActionName"] for a in scaling.actions("Green")] == ["Morning", "Night"]


def counts(deployer: Deployer) -> dict[str, int]:
    """The endpoint's variants with their numbers of instances."""
    endpoint = deployer.aws.client("sagemaker").describe_endpoint(EndpointName="e")
    return {each["VariantName"]: each["CurrentInstanceCount"] for each in endpoint["ProductionVariants"]}


def test_the_instance_type_of_a_scaled_variant_changes_in_two_steps(
    messages: Messages, deployed: dict[str, Any], deployer: Deployer, scaling: Scaling
) -> None:
    def with_type(instance_type: str, *, scaled: bool) -> dict[str, Any]:
        changed = json.loads(json.dumps(deployed))
        for name, each in deployed["Resources"].items():
            if each["Type"] == "AWS::SageMaker::EndpointConfig":
                for variant in changed["Resources"][name]["Properties"]["ProductionVariants"]:
                    variant["InstanceType"] = instance_type
            elif not scaled and each["Type"].startswith(("AWS::ApplicationAutoScaling::", "AWS::CloudWatch::")):
                del changed["Resources"][name]
        return dict(changed)

    # Scaling goes in the cleanup, after the endpoint was updated: both at once is rejected like the type alone.
    for scaled in (True, False):
        assert deployer.deploy(with_type("ml.g6.12xlarge", scaled=scaled), "scaled") == "UPDATE_ROLLBACK_COMPLETE"
        reasons = [event.get("ResourceStatusReason", "") for event in deployer.raw_events("scaled")]
        (reason,) = {each for each in reasons if "ml.g5.12xlarge" in each and "ml.g6.12xlarge" in each}
        messages.record("ValidationException", reason.rpartition("): ")[2].removesuffix('"'))
    assert len(scaling.policies("Green")) == 7

    assert deployer.deploy(with_type("ml.g5.12xlarge", scaled=False), "scaled") == "UPDATE_COMPLETE"
    assert scaling.all() == []
    assert deployer.deploy(with_type("ml.g6.12xlarge", scaled=True), "scaled") == "UPDATE_COMPLETE"
    assert len(scaling.policies("Green")) == 7


# What the service rejects.


def target(resource_id: str = resource("Green"), **more: Any) -> dict[str, Any]:
    properties = {**NAMES, "ResourceId": resource_id, "MinCapacity": 1, "MaxCapacity": 2, **more}
    return {"Resources": {"Target": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": properties}}}


def failures(deployer: Deployer, name: str) -> str:
    return "\n".join(
        event.get("ResourceStatusReason", "")
        for event in deployer.raw_events(name)
        if event["ResourceStatus"] == "CREATE_FAILED"
    )


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("resource_id", ["endpoint/none/variant/Green", "endpoint/e/variant/Red"])
def test_a_variant_that_does_not_exist_is_no_target(deployer: Deployer, resource_id: str) -> None:
    name = deployer.new_name()
    assert deployer.deploy(target(resource_id), name) == "ROLLBACK_COMPLETE"
    assert f"SageMaker endpoint variant doesn't exist: {resource_id}" in failures(deployer, name)


@pytest.mark.parametrize("limits", [{}, {"MinCapacity": 1}, {"MaxCapacity": 2}], ids=["none", "minimum", "maximum"])
def test_a_new_target_needs_both_limits(scaling: Scaling, unscaled: str, limits: dict[str, int]) -> None:
    target = {**NAMES, "ResourceId": unscaled}
    with pytest.raises(ClientError, match="ValidationException"):
        scaling.client.register_scalable_target(**target, **limits)
    assert not scaling.client.describe_scalable_targets(**NAMES, ResourceIds=[unscaled])["ScalableTargets"]

    scaling.client.register_scalable_target(**target, MinCapacity=1, MaxCapacity=2)
    # "Any parameters that you don't specify are not changed by this update request."
    scaling.client.register_scalable_target(**target, **limits)
    (found,) = scaling.client.describe_scalable_targets(**NAMES, ResourceIds=[unscaled])["ScalableTargets"]
    assert (found["MinCapacity"], found["MaxCapacity"]) == (1, 2)
    scaling.client.deregister_scalable_target(**target)


@pytest.mark.usefixtures("deployed")
def test_what_is_not_registered_has_no_policies_and_no_schedules(scaling: Scaling) -> None:
    unknown = {**NAMES, "ResourceId": resource("Red")}
    tracking = {
        "TargetValue": 1,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    }
    message = "ObjectNotFoundException.* No scalable target registered for service namespace: sagemaker"
    with pytest.raises(ClientError, match=message):
        scaling.client.put_scaling_policy(
            **unknown,
            PolicyName="p",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=tracking,
        )
    with pytest.raises(ClientError, match=message):
        scaling.client.put_scheduled_action(
            **unknown, ScheduledActionName="a", Schedule="rate(1 hour)", ScalableTargetAction={"MinCapacity": 1}
        )
    with pytest.raises(ClientError, match="ObjectNotFoundException"):
        scaling.client.deregister_scalable_target(**unknown)
    with pytest.raises(ClientError, match="ObjectNotFoundException"):
        scaling.client.delete_scaling_policy(**unknown, PolicyName="p")


@pytest.mark.parametrize("limit", ["StartTime", "EndTime"])
def test_a_scheduled_action_that_begins_or_ends_at_a_time_is_rejected(
    scaling: Scaling, unscaled: str, rejected: Rejected, limit: str
) -> None:
    with rejected("ValidationException"):
        scaling.client.put_scheduled_action(
            **NAMES,
            ResourceId=unscaled,
            ScheduledActionName="sale",
            Schedule="rate(1 hour)",
            ScalableTargetAction={"MinCapacity": 1},
            **{limit: datetime(2026, 12, 1, tzinfo=UTC)},
        )


@pytest.mark.parametrize(
    ("correction", "without_it"),
    [
        (
            "any variant can be registered, and keeps its number of instances",
            "backend.register_scalable_target(*E, 1, 2, '', '')",
        ),
        (
            "a new target needs no limits",
            "backend.register_scalable_target(*E, None, None, '', '')",
        ),
        (
            "a policy needs no target",
            "put(); assert backend.policies",
        ),
        (
            "a policy that is put again has another ARN",
            "assert put().policy_arn != put().policy_arn",
        ),
        (
            "policies outlive their target",
            "backend.register_scalable_target(*E, 1, 2, '', ''); put()\n"
            "backend.deregister_scalable_target(*E)\nassert backend.policies",
        ),
        (
            "policies are found by a part of the resource's name",
            "put()\nassert backend.describe_scaling_policies(E[0], E[1] + 'x', E[2], None, None)[1]",
        ),
    ],
    ids=lambda value: value if " " in value and "backend" not in value else "",
)
def test_moto_still_needs_our_corrections_of_scaling(correction: str, without_it: str) -> None:
    """If one of these fails, moto is fixed: remove its correction from `moto_state/scaling.py`."""
    code = f"""
from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
backend = ApplicationAutoscalingBackend("us-east-1", "123456789012")
E = ("sagemaker", "endpoint/none/variant/v", {DIMENSION!r})
def put():
    return backend.put_scaling_policy("p", *E, {{}}, "StepScaling")
{without_it}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
