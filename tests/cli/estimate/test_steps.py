"""Step policies in the model of `estimate`: the rules of alarms, steps and cooldowns."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.cli.estimate.model import simulate
from cdk_triton.cli.estimate.policies import Policy, of_app
from cdk_triton.cli.estimate.steps import StepPolicy
from cdk_triton.cli.estimate.trace import Instance

if TYPE_CHECKING:
    from golden_messages import Messages

UP, DOWN = "GreaterThanOrEqualToThreshold", "LessThanOrEqualToThreshold"
POLICY, ALARM = "AWS::ApplicationAutoScaling::ScalingPolicy", "AWS::CloudWatch::Alarm"
NAME = {"Fn::GetAtt": ["Endpoint", "EndpointName"]}


def steps(comparison: str, threshold: float, *found: tuple[float, float, float], **others: Any) -> StepPolicy:
    """A policy on the invocations of an instance in a minute, with a cooldown of five minutes."""
    values = {
        "metric": "InvocationsPerInstance",
        "gpus": 1,
        "period": 1,
        "periods": 1,
        "datapoints": 1,
        "adjustment": "ChangeInCapacity",
        "least_change": 1,
        "cooldown": 5,
        "aggregation": "Average",
    }
    return StepPolicy(comparison=comparison, threshold=threshold, steps=found, **{**values, **others})


def run(requests: list[float], *policies: StepPolicy, count: int = 1, start: int = 1) -> tuple[int, ...]:
    policy = Policy("steps", None, count, 20, steps=policies)
    return simulate(requests, datetime(2026, 1, 5, tzinfo=UTC), policy, Instance(600, 50, start)).paid


ADDS = steps(UP, 300, (0, 300, 1), (300, inf, 3))


@pytest.mark.parametrize(("load", "added"), [(299, 0), (300, 1), (599, 1), (600, 3), (5000, 3)])
def test_the_size_of_the_breach_chooses_the_step(load: float, added: int) -> None:
    """Above the threshold, a lower bound is in its step and an upper one is not."""
    assert run([load], ADDS) == (1 + added,)


@pytest.mark.parametrize(("load", "left"), [(101, 10), (100, 9), (51, 9), (50, 7), (1, 7)])
def test_below_the_threshold_the_upper_bound_is_in_its_step(load: float, left: int) -> None:
    removes = steps(DOWN, 100, (-50, 0, -1), (-inf, -50, -3))

    assert run([1e5, *[load * 10.0] * 2], steps(UP, 9000, (0, inf, 9)), removes)[-1] == left


def test_an_alarm_needs_its_datapoints_within_its_periods() -> None:
    two_of_three = steps(UP, 300, (0, inf, 1), periods=3, datapoints=2, aggregation="Maximum")

    assert run([300, 0, 0, 300], two_of_three) == (1, 1, 1, 1)
    assert run([300, 0, 300, 0], two_of_three) == (1, 1, 2, 2)


def test_a_period_of_minutes_is_their_sum_and_ends_with_each_minute() -> None:
    of_five = steps(UP, 300, (0, inf, 1), period=5)

    assert run([60, 60, 60, 60, 50, 60, 60], of_five) == (1,) * 7
    assert run([60, 60, 60, 60, 50, 60, 70], of_five) == (*(1,) * 6, 2)


def test_within_the_cooldown_a_larger_step_adds_the_difference() -> None:
    """The cooldown begins when the instance has started: minute 2, and five more."""
    found = run([300, 300, *[600 * 2] * 2, *[700 * 4] * 6], ADDS, start=2)

    assert found == (2, 2, 4, 4, 4, 4, 4, 4, 4, 7)


def test_within_the_cooldown_an_exact_number_is_not_reduced() -> None:
    exact = steps(UP, 300, (0, 300, 6), (300, inf, 10), metric="Invocations", adjustment="ExactCapacity", cooldown=20)

    assert run([400, 400, 900], exact, count=2) == (6, 6, 10)


def test_a_removal_waits_for_its_cooldown_and_an_addition_ends_that() -> None:
    removes = steps(DOWN, 100, (-inf, 0, -1), cooldown=10)
    idle = run([4500, 4500, *[9.0] * 22], steps(UP, 4000, (0, inf, 4)), removes)
    again = run([4500, 4500, 9, 16000, *[9.0] * 4], steps(UP, 4000, (0, inf, 4), cooldown=0), removes)

    assert idle == (5, 5, *[4] * 10, *[3] * 10, 2, 2)
    assert again == (5, 5, 4, 8, 7, 7, 7, 7)


@pytest.mark.parametrize("metric", ["InvocationsPerInstance", "Invocations", "GPUUtilization"])
def test_without_requests_the_metrics_are_zero_and_instances_go(metric: str) -> None:
    removes = steps(DOWN, 10, (-inf, 0, -1), metric=metric)

    assert run([4500, 4500, *[0.0] * 3], steps(UP, 4000, (0, inf, 1)), removes) == (2, 2, 1, 1, 1)


def test_percentages_are_those_of_the_user_guide() -> None:
    """Of "Step adjustments": 10, 11, 14, 13, 10. 25 percent of 4 is at least the 2 that are given."""
    out = steps(UP, 50, (0, 10, 0), (10, 20, 10), (20, inf, 30), adjustment="PercentChangeInCapacity")
    into = steps(DOWN, 50, (-10, 0, 0), (-20, -10, -10), (-inf, -20, -30), adjustment="PercentChangeInCapacity")
    quarter = steps(UP, 50, (0, inf, 25), adjustment="PercentChangeInCapacity", least_change=2)

    assert [out.changed(60, 10), out.changed(70, 11), into.changed(40, 14), into.changed(30, 13)] == [11, 14, 13, 10]
    assert (out.changed(55, 10), into.changed(41, 10), quarter.changed(50, 4)) == (10, 10, 6)
    assert steps(UP, 50, (0, inf, 7), adjustment="ExactCapacity").changed(60, 3) == 7


def template(alarm: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    """A scaled variant with a step policy on the GPU, as `scale_on_metric` makes it, with changes."""
    variant = {"VariantName": "All", "ModelName": "m", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 1}
    target = {"Fn::Join": ["", ["endpoint/", NAME, "/variant/All"]]}
    dimensions = [{"Name": "EndpointName", "Value": NAME}, {"Name": "VariantName", "Value": "All"}]
    of_alarm = {
        "AlarmActions": [{"Ref": "Policy"}],
        "ComparisonOperator": UP,
        "EvaluationPeriods": 2,
        "Period": 300,
        "MetricName": "GPUUtilization",
        "Namespace": "/aws/sagemaker/Endpoints",
        "Statistic": "Average",
        "Threshold": 200,
        "Dimensions": dimensions,
    }
    found = {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 600,
        "MetricAggregationType": "Average",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 2}],
    }
    of_policy = {
        "PolicyName": "Gpu",
        "PolicyType": "StepScaling",
        "ScalingTargetId": {"Ref": "Target"},
        "StepScalingPolicyConfiguration": {**found, **policy},
    }
    resources = {
        "Config": ("AWS::SageMaker::EndpointConfig", {"ProductionVariants": [variant]}),
        "Endpoint": ("AWS::SageMaker::Endpoint", {"EndpointConfigName": {"Ref": "Config"}}),
        "Target": (
            "AWS::ApplicationAutoScaling::ScalableTarget",
            {"MinCapacity": 1, "MaxCapacity": 4, "ResourceId": target},
        ),
        "Policy": (POLICY, of_policy),
        "Alarm": (ALARM, {key: each for key, each in {**of_alarm, **alarm}.items() if each is not None}),
    }
    return {"Resources": {id: {"Type": kind, "Properties": of} for id, (kind, of) in resources.items()}}


Read = Callable[..., Policy]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The policy of a cloud assembly with that template."""

    def policy(alarm: dict[str, Any], steps: dict[str, Any]) -> Policy:
        artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "stack.json"}}
        (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Stack": artifact}}))
        (tmp_path / "stack.json").write_text(json.dumps(template(alarm, steps)))
        ((found,), _) = of_app(tmp_path)
        return found

    return policy


def test_a_policy_of_an_app_is_read_with_its_alarm(read: Read) -> None:
    (found,) = read({"DatapointsToAlarm": 1}, {}).steps

    assert found == StepPolicy(
        metric="GPUUtilization",
        gpus=4,
        period=5,
        periods=2,
        datapoints=1,
        comparison=UP,
        threshold=200,
        adjustment="ChangeInCapacity",
        steps=[(0, inf, 2)],
        least_change=1,
        cooldown=10,
        aggregation="Average",
    )
    assert found.value(300, 1, Instance(600, 50, 8)) == 100  # half of the rate at 50 % of each of four GPUs


REJECTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another metric": ({"MetricName": "GPUMemoryUtilization"}, {}),
    "a mathematical expression": ({"MetricName": None, "Metrics": []}, {}),
    "another endpoint": ({"Dimensions": [{"Name": "EndpointName", "Value": "other"}]}, {}),
    "another statistic": ({"Statistic": "Maximum"}, {}),
    "seconds": ({"Period": 10}, {}),
    "a band": ({"ComparisonOperator": "LessThanLowerOrGreaterThanUpperThreshold"}, {}),
    "no alarm": ({"AlarmActions": []}, {}),
    "a parameter": ({"Threshold": {"Ref": "Threshold"}}, {}),
}


@pytest.mark.parametrize(("alarm", "policy"), REJECTED.values(), ids=REJECTED)
def test_a_policy_that_is_not_modelled_is_named_with_the_reason(
    messages: Messages, read: Read, alarm: dict[str, Any], policy: dict[str, Any]
) -> None:
    found = read(alarm, policy)

    assert found.steps == []
    messages.record("cdk-triton estimate", *found.not_modelled)
