"""Scaling on the local AWS, whose time moves only when a test moves it: the constructs' policies, and no server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.assertions import Template
from tests.local_aws.conftest import Deployer, EndpointDouble
from tests.local_aws.models import Model

from cdk_triton import TritonEndpoint
from cdk_triton.cli.estimate.model import simulate
from cdk_triton.cli.estimate.policies import Policy, of_app
from cdk_triton.cli.estimate.trace import Instance
from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount
from cdk_triton.hosting.endpoints.variants.metrics import EndpointMetrics
from cdk_triton_local import Clock, LocalAws

START_MINUTES = 3
RATE = 1.0  # requests per second of one instance, as `bench` measures it
QUEUE = cloudwatch.Metric(namespace="Shop", metric_name="Queue", period=cdk.Duration.minutes(1))
STEPS = [
    autoscaling.ScalingInterval(upper=10, change=-1),
    autoscaling.ScalingInterval(lower=100, change=1),
    autoscaling.ScalingInterval(lower=500, change=3),
]

Served = Callable[[str, Callable[[ScalableInstanceCount], object]], "Scaled"]


class Scaled:
    """An endpoint that is scaled."""

    def __init__(self, aws: LocalAws, name: str) -> None:
        self._aws, self._name = aws, name

    @property
    def count(self) -> int:
        """The instances that run or start."""
        described = self._aws.client("sagemaker").describe_endpoint(EndpointName=self._name)
        return int(described["ProductionVariants"][0]["DesiredInstanceCount"])

    def under(self, loads: Sequence[float]) -> list[int]:
        """The instances after minutes with so many requests each."""
        return [self._after(load) for load in loads]

    def with_queue(self, lengths: Sequence[float]) -> list[int]:
        """The instances after minutes with a queue of these lengths."""
        return [self._after(0, length) for length in lengths]

    def _after(self, load: float, length: float | None = None) -> int:
        if load:
            self._aws.metrics.record(self._name, "AllTraffic", "InvocationsPerInstance", load)
        if length is not None:
            time = datetime.fromtimestamp(self._aws.clock.machine_now, UTC)
            datum: Any = {"MetricName": "Queue", "Value": length, "Timestamp": time}
            self._aws.client("cloudwatch").put_metric_data(Namespace="Shop", MetricData=[datum])
        self._aws.clock.advance(60)
        return self.count


@pytest.fixture(name="aws", scope="module")
def _aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: EndpointDouble(), clock=clock) as aws:
        clock.advance(90 - clock.now % 60)  # half a minute before and after each look at the metrics
        yield aws


@pytest.fixture(name="served")
def _served(aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Serves an endpoint with 1 to 8 instances, which start within three minutes."""

    def serve(name: str, scale: Callable[[ScalableInstanceCount], object]) -> Scaled:
        app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, name, synthesizer=cdk.BootstraplessSynthesizer())
        endpoint = TritonEndpoint(stack, "Endpoint", model=Model(stack, "Model"), endpoint_name=name)
        scale(endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8))
        assert Deployer(aws).deploy(Template.from_stack(stack).to_json(), name) == "CREATE_COMPLETE"
        return Scaled(aws, name)

    monkeypatch.setattr("cdk_triton_local.endpoints.instance_changes.SECONDS", 60.0 * START_MINUTES)
    return serve


def test_the_load_is_scaled_as_estimate_predicts_it(served: Served) -> None:
    """Half of the rate that `bench` measured is the target: 30 requests per minute and instance."""
    loads = [20.0] * 3 + [100.0] * 12 + [200.0] * 15 + [150.0] * 17
    scaled = served("tracked", lambda count: count.scale_on_invocations("Requests", max_requests_per_second=RATE))

    policy = Policy("tracked", instance_type=None, least=1, most=8, safety_factor=0.5)
    instance = Instance(requests=60 * RATE, gpu_percent=None, start_minutes=START_MINUTES)
    predicted = simulate(loads, datetime(2026, 11, 30, tzinfo=UTC), policy, instance)

    assert scaled.under(loads) == list(predicted.paid)
    assert set(predicted.paid) == {1, 4, 7, 6}


def test_without_requests_instances_go_one_at_a_time_after_a_cooldown(served: Served) -> None:
    cooldown = cdk.Duration.minutes(10)
    scaled = served(
        "idle",
        lambda count: count.scale_on_invocations("Requests", max_requests_per_second=RATE, scale_in_cooldown=cooldown),
    )
    assert scaled.under([80.0] * 3 + [0.0] * 36) == [1] * 2 + [3] * 15 + [2] * 10 + [1] * 12


def test_steps_add_by_the_size_of_the_breach_and_remove(served: Served) -> None:
    scaled = served(
        "stepped",
        lambda count: count.scale_on_metric(
            "Queue", metric=QUEUE, scaling_steps=STEPS, scale_in_cooldown=cdk.Duration.minutes(10)
        ),
    )
    # Within the five minutes after the second instance has started, the larger step adds only two more.
    assert scaled.with_queue([50, 150, 50, 50, 600, 600, 600, 50]) == [1, 2, 2, 2, 4, 4, 4, 4]
    assert scaled.with_queue([5] * 15) == [3] * 13 + [2] * 2
    # An addition does not wait for the end of the other cooldown, and ends it.
    assert scaled.with_queue([5, 600, 5, 5, 5]) == [2, 5, 5, 5, 4]


def test_steps_are_taken_as_estimate_predicts_them(served: Served, tmp_path: Path) -> None:
    loads = [20.0] * 2 + [100.0] * 6 + [250.0] * 12 + [400.0] * 5 + [20.0] * 5

    def scale(count: ScalableInstanceCount) -> None:
        metric = EndpointMetrics(endpoint_name="foreseen", variant_name="AllTraffic").metric_invocations_per_instance()
        count.scale_on_metric("Requests", metric=metric, scaling_steps=STEPS)

    scaled = served("foreseen", scale)
    ((policy,), _) = of_app(tmp_path)
    instance = Instance(requests=60 * RATE, gpu_percent=None, start_minutes=START_MINUTES)
    predicted = simulate(loads, datetime(2026, 11, 30, tzinfo=UTC), policy, instance)

    assert scaled.under(loads) == list(predicted.paid)
    assert set(predicted.paid) == {1, 2, 3, 4}


WITHOUT_DATA = {"Namespace": "Shop", "MetricName": "None", "Statistic": "Average"}


@pytest.mark.parametrize(
    ("policy", "counts"),
    [
        pytest.param({"CustomizedMetricSpecification": WITHOUT_DATA}, {3}, id="without data"),
        pytest.param({"CustomizedMetricSpecification": WITHOUT_DATA, "DisableScaleIn": True}, {3, 2}, id="disabled"),
        pytest.param(
            {"CustomizedMetricSpecification": {**WITHOUT_DATA, "Namespace": "/aws/sagemaker/Endpoints"}},
            {3, 2},
            id="not published here",
        ),
    ],
)
def test_instances_are_removed_if_all_policies_that_may_remove_them_are_ready(
    aws: LocalAws, served: Served, request: pytest.FixtureRequest, policy: dict[str, Any], counts: set[int]
) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    scaled = served(name, lambda count: count.scale_on_invocations("Requests", max_requests_per_second=RATE))
    aws.client("application-autoscaling").put_scaling_policy(
        PolicyName="other",
        ServiceNamespace="sagemaker",
        ResourceId=f"endpoint/{name}/variant/AllTraffic",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 1, **policy},
    )

    assert set(scaled.under([80.0] * 3 + [0.0] * 17)[3:]) == counts


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param({"StateReasonData": json.dumps({"recentDatapoints": [600.0]})}, 4, id="with values"),
        pytest.param({}, 1, id="without"),  # "you must include information in the StateReasonData parameter"
    ],
)
def test_an_alarm_that_somebody_sets_off_takes_the_step_of_the_given_values(
    aws: LocalAws, served: Served, data: dict[str, str], count: int
) -> None:
    scaled = served(
        f"set-off-{count}", lambda number: number.scale_on_metric("Queue", metric=QUEUE, scaling_steps=STEPS)
    )
    cloudwatch = aws.client("cloudwatch")
    (upper,) = [
        each["AlarmName"]
        for each in cloudwatch.describe_alarms()["MetricAlarms"]
        if f"set-off-{count}" in each["AlarmName"] and each["Threshold"] == 100
    ]
    cloudwatch.set_alarm_state(AlarmName=upper, StateValue="ALARM", StateReason="the test", **data)

    assert scaled.under([0]) == [count]


def step_at_one(aws: LocalAws, endpoint: str, *, period: int, adjustment: int, **configuration: Any) -> None:
    """Add a step policy to an endpoint, and an alarm at a sum of 1 of the metric with the endpoint's name."""
    arn = aws.client("application-autoscaling").put_scaling_policy(
        PolicyName="step",
        ServiceNamespace="sagemaker",
        ResourceId=f"endpoint/{endpoint}/variant/AllTraffic",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": adjustment}],
            **configuration,
        },
    )["PolicyARN"]
    aws.client("cloudwatch").put_metric_alarm(
        AlarmName=endpoint,
        Namespace="Shop",
        MetricName=endpoint,
        Statistic="Sum",
        Period=period,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        AlarmActions=[arn],
    )


def test_an_alarm_with_a_short_period_starts_its_policy_once_a_minute(
    aws: LocalAws, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = served("short", lambda count: None)
    monkeypatch.setattr("cdk_triton_local.endpoints.instance_changes.SECONDS", 0.0)
    step_at_one(aws, "short", period=10, AdjustmentType="ChangeInCapacity", adjustment=1, Cooldown=0)
    times = [datetime.fromtimestamp(aws.clock.machine_now + 10 * number, UTC) for number in range(30)]
    aws.client("cloudwatch").put_metric_data(
        Namespace="Shop", MetricData=[{"MetricName": "short", "Value": 1, "Timestamp": time} for time in times]
    )

    assert scaled.under([0] * 4) == [2, 3, 4, 5]


def test_a_step_of_no_percent_adds_nothing(aws: LocalAws, served: Served) -> None:
    scaled = served("percent", lambda count: None)
    step_at_one(
        aws, "percent", period=60, AdjustmentType="PercentChangeInCapacity", adjustment=0, MinAdjustmentMagnitude=2
    )
    data = json.dumps({"recentDatapoints": [2.0]})
    aws.client("cloudwatch").set_alarm_state(
        AlarmName="percent", StateValue="ALARM", StateReason="the test", StateReasonData=data
    )

    assert scaled.under([0]) == [1]


@pytest.mark.parametrize("gained", [0, 118])
def test_a_schedule_changes_the_limits_and_the_instances_at_the_time_of_the_machine(
    aws: LocalAws, served: Served, gained: int
) -> None:
    name = f"scheduled-{gained}"
    aws.clock.advance(120, pace=120 / (120 - gained))
    soon = datetime.fromtimestamp(aws.clock.machine_now + 180, UTC)
    scaled = served(
        name,
        lambda count: count.scale_on_schedule(
            "Morning",
            schedule=autoscaling.Schedule.cron(hour=str(soon.hour), minute=str(soon.minute)),
            min_capacity=4,
        ),
    )
    assert scaled.under([0.0] * 5) == [1, 1, 4, 4, 4]
    (target,) = aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=[f"endpoint/{name}/variant/AllTraffic"]
    )["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (4, 8)
