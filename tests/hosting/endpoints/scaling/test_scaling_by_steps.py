"""Scaling by the clock and in steps."""

from __future__ import annotations

import math
import re
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from botocore.loaders import Loader
from botocore.model import ServiceModel

from cdk_triton import TritonEndpoint
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import ScalableInstanceCount

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TARGET, POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"


# Schedules.


def test_a_schedule_sets_limits_in_its_time_zone(world: World, stack: cdk.Stack, count: ScalableInstanceCount) -> None:
    count.scale_on_schedule(
        "Morning",
        schedule=autoscaling.Schedule.cron(hour="7", minute="30"),
        min_capacity=4,
        time_zone=cdk.TimeZone.EUROPE_BERLIN,
    )
    count.scale_on_schedule("Night", schedule=autoscaling.Schedule.cron(hour="20", minute="0"), min_capacity=1)

    assert world.only(stack, TARGET)["Properties"]["ScheduledActions"] == [
        {
            "ScheduledActionName": "Morning",
            "Schedule": "cron(30 7 * * ? *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 4},
        },
        {
            "ScheduledActionName": "Night",
            "Schedule": "cron(0 20 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": 1},
        },
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"min_capacity": 0},
        {"max_capacity": 0},
        {"min_capacity": 4, "max_capacity": 3},
        {"min_capacity": 9},
        {
            "min_capacity": 2,
            "schedule": autoscaling.Schedule.rate(cdk.Duration.hours(1)),
            "time_zone": cdk.TimeZone.ASIA_TOKYO,
        },
    ],
    ids=["no limit", "least 0", "most 0", "4 to 3", "least above most", "a time zone without a time"],
)
def test_a_schedule_that_cannot_be_meant_is_rejected(
    messages: Messages, count: ScalableInstanceCount, arguments: dict[str, Any]
) -> None:
    with messages.raises(ConfigurationError):
        count.scale_on_schedule("X", **{"schedule": autoscaling.Schedule.cron(hour="7", minute="0"), **arguments})


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("0 7 * * *", "cron(0 7 * * ? *)"),
        ("0 7 * * 1-5", "cron(0 7 * * ? *)"),
        ("cron(0 7 * * *)", "cron(0 7 * * ? *)"),
        ("cron 0 7 * * ? *", "six fields"),
        ("rate(1 week)", "rate"),
        ("7:00", "at("),
        ("cron(0 25 * * ? *)", "hours 25: use 0 to 23"),
        ("cron(60/5 7 * * ? *)", "minutes 60"),
        ("cron(0 7 0-3 * ? *)", "day of month 0"),
        ("cron(0 7 * 1,13 ? *)", "month 13"),
        ("cron(0 7 ? * 8 *)", "day of week 8"),
        ("cron(0 7 ? * 0 *)", "day of week 0: use 1 to 7"),
        ("cron(0 7 40W * ? *)", "day of month 40"),
        ("cron(0 7 ? * MO-FR *)", "words from SUN to SAT"),
        ("cron(0 7 ? * 6#6 *)", "'6#6' as day of week"),
        ("cron(0 7 ? JANUARY 2 *)", "'JANUARY' as month"),
        ("cron(noon 7 * * ? *)", "'noon' as minutes"),
        ("cron(0 7, * * ? *)", "'' as hours"),
        ("cron(? 7 * * ? *)", "'?' as minutes"),
        ("at(tomorrow)", "at(2027-01-31T07:00:00)"),
        ("at(2026-02-30T07:00:00)", "valid date and time"),
        ("at(2026-12-24)", "valid date and time"),
        ("at(2026-12-24T20:00:00Z)", "valid date and time"),
    ],
)
def test_an_expression_that_is_no_schedule_is_rejected(
    messages: Messages, count: ScalableInstanceCount, expression: str, named: str
) -> None:
    with messages.raises(ConfigurationError) as caught:
        count.scale_on_schedule("X", schedule=autoscaling.Schedule.expression(expression), min_capacity=2)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0/15 7-19 ? * MON-FRI *)",
        "cron(0 7 L * ? 2026-2030)",
        "cron(0 7 15W 1,6 ? *)",
        "cron(0 7 ? * 6#3 *)",
        "cron(0 7 ? * FRI#3 *)",
        "cron(0 7 ? * 6L *)",
        "cron(0,30 7 LW JAN-MAR,6 ? *)",
        "cron(*/15 7 ? * mon-fri *)",
        "rate(5 minutes)",
        "at(2026-12-24T20:00:00)",
    ],
)
def test_other_expressions_are_passed_on(count: ScalableInstanceCount, expression: str) -> None:
    count.scale_on_schedule("X", schedule=autoscaling.Schedule.expression(expression), min_capacity=2)


def test_an_expression_may_be_a_token(stack: cdk.Stack, count: ScalableInstanceCount) -> None:
    given = cdk.CfnParameter(stack, "Morning").value_as_string
    count.scale_on_schedule("X", schedule=autoscaling.Schedule.expression(given), min_capacity=2)


def test_two_schedules_have_two_names(messages: Messages, count: ScalableInstanceCount) -> None:
    schedule = autoscaling.Schedule.cron(hour="7", minute="0")
    count.scale_on_schedule("Morning", schedule=schedule, min_capacity=2)
    with messages.raises(ConfigurationError):
        count.scale_on_schedule("Morning", schedule=schedule, min_capacity=3)


@pytest.fixture
def without_old_zones(tmp_path: Path) -> Iterator[None]:
    """A database of time zones like that of Debian 13, without the names that it keeps for compatibility."""
    path = zoneinfo.TZPATH
    for name in ("Europe/Berlin", "Asia/Kathmandu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"TZif")
    zoneinfo.reset_tzpath([tmp_path])
    yield
    zoneinfo.reset_tzpath(path)


def in_zone(count: ScalableInstanceCount, name: str) -> None:
    morning = autoscaling.Schedule.cron(hour="7", minute="0")
    count.scale_on_schedule("X", schedule=morning, min_capacity=2, time_zone=cdk.TimeZone.of(name))


@pytest.mark.parametrize("name", ["US/Pacific", "Asia/Katmandu"])
@pytest.mark.usefixtures("without_old_zones")
def test_a_zone_that_this_machine_may_lack_is_passed_on(count: ScalableInstanceCount, name: str) -> None:
    in_zone(count, name)


def test_a_zone_that_is_newer_than_this_machine_is_passed_on(count: ScalableInstanceCount) -> None:
    in_zone(count, "Mars/Olympus")


@pytest.mark.parametrize("name", ["Europe/Berln", "PDT"])
def test_another_zone_is_rejected(messages: Messages, count: ScalableInstanceCount, name: str) -> None:
    with messages.raises(ConfigurationError):
        in_zone(count, name)


# Steps.


def interval(change: float, **bounds: float) -> autoscaling.ScalingInterval:
    return autoscaling.ScalingInterval(change=change, **bounds)


UP_AND_DOWN = [interval(-1, upper=10), interval(1, lower=50), interval(3, lower=70)]


def steps(world: World, stack: cdk.Stack) -> dict[int, list[int]]:
    """Cooldown to the changes of the policy that has it."""
    configurations = [
        resource["Properties"]["StepScalingPolicyConfiguration"] for resource in world.resources(stack, POLICY).values()
    ]
    return {
        each["Cooldown"]: [step["ScalingAdjustment"] for step in each["StepAdjustments"]] for each in configurations
    }


def test_steps_add_and_take_away_with_a_cooldown_each(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint, count: ScalableInstanceCount
) -> None:
    latency = endpoint.metric("ModelLatency", statistic="p95")
    policy = count.scale_on_metric("Latency", metric=latency, scaling_steps=UP_AND_DOWN, evaluation_periods=3)

    assert steps(world, stack) == {600: [-1], 300: [1, 3]}
    alarms = [resource["Properties"] for resource in world.resources(stack, "AWS::CloudWatch::Alarm").values()]
    assert sorted(alarm["Threshold"] for alarm in alarms) == [10, 50]
    assert {(alarm["Period"], alarm["EvaluationPeriods"], alarm["ExtendedStatistic"]) for alarm in alarms} == {
        (60, 3, "p95")
    }
    assert policy.upper_alarm is not None


def test_a_metric_that_is_low_under_load_has_the_cooldowns_the_other_way_round(
    world: World, stack: cdk.Stack, count: ScalableInstanceCount
) -> None:
    count.scale_on_metric(
        "Free",
        metric=cloudwatch.Metric(namespace="Own", metric_name="FreeWorkers"),
        scaling_steps=[interval(2, upper=3), interval(-1, lower=20)],
        scale_in_cooldown=cdk.Duration.minutes(30),
        scale_out_cooldown=cdk.Duration.minutes(1),
    )

    assert steps(world, stack) == {1800: [-1], 60: [2]}


def test_steps_follow_mathematical_expressions(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    share = cloudwatch.MathExpression(expression="m / 1000", using_metrics={"m": endpoint.metric("ModelLatency")})
    count.scale_on_metric("Latency", metric=share, scaling_steps=UP_AND_DOWN)

    alarms = world.resources(stack, "AWS::CloudWatch::Alarm").values()
    assert {alarm["Properties"]["Metrics"][0]["Expression"] for alarm in alarms} == {"m / 1000"}


@pytest.mark.parametrize(
    "scaling_steps",
    [
        [],
        [interval(1, lower=50)],
        [interval(1, lower=number) for number in range(41)],
        [interval(0, upper=10), interval(0, lower=50)],
        [interval(-1, upper=10), interval(math.inf, lower=50)],
    ],
    ids=["none", "one", "too many", "without change", "infinite"],
)
def test_steps_that_cannot_scale_are_rejected(
    messages: Messages, count: ScalableInstanceCount, scaling_steps: list[autoscaling.ScalingInterval]
) -> None:
    metric = cloudwatch.Metric(namespace="Own", metric_name="Load")
    with messages.raises(ConfigurationError):
        count.scale_on_metric("X", metric=metric, scaling_steps=scaling_steps)


def test_numbers_of_periods_may_be_tokens(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint, count: ScalableInstanceCount
) -> None:
    periods = cdk.CfnParameter(stack, "Periods", type="Number").value_as_number
    count.scale_on_metric(
        "Latency",
        metric=endpoint.metric_model_latency(),
        scaling_steps=UP_AND_DOWN,
        evaluation_periods=periods,  # type: ignore[arg-type]  # a token is a float
        datapoints_to_alarm=2,
    )

    alarms = [resource["Properties"] for resource in world.resources(stack, "AWS::CloudWatch::Alarm").values()]
    assert [(each["EvaluationPeriods"], each["DatapointsToAlarm"]) for each in alarms] == [({"Ref": "Periods"}, 2)] * 2


def test_steps_may_only_add_beside_a_policy_that_holds_a_target(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint, count: ScalableInstanceCount
) -> None:
    count.scale_on_invocations("Requests", max_requests_per_second=10)
    count.scale_on_metric(
        "Latency",
        metric=endpoint.metric_model_latency(),
        scaling_steps=[
            autoscaling.ScalingInterval(lower=400_000, change=1),
            autoscaling.ScalingInterval(lower=800_000, change=3),
        ],
    )

    steps = [
        policy["Properties"]["StepScalingPolicyConfiguration"]
        for policy in world.resources(stack, POLICY).values()
        if policy["Properties"]["PolicyType"] == "StepScaling"
    ]
    assert [(step["Cooldown"], step["StepAdjustments"]) for step in steps] == [
        (
            300,
            [
                {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 400_000, "ScalingAdjustment": 1},
                {"MetricIntervalLowerBound": 400_000, "ScalingAdjustment": 3},
            ],
        )
    ]


@pytest.mark.parametrize(
    "id",
    ["Monday Morning", "7 h", "früh", "x" * 256, "", "day/night", "at 7:00", "a|b", "a\nb", " 7", "7 ", "x" * 257],
)
def test_a_schedule_has_a_name_that_application_auto_scaling_takes(
    messages: Messages, count: ScalableInstanceCount, id: str
) -> None:
    schedule = autoscaling.Schedule.cron(hour="7", minute="0")
    service = ServiceModel(Loader().load_service_model("application-autoscaling", "service-2"))
    limits = service.shape_for("ScheduledActionName").metadata
    if re.fullmatch(limits["pattern"], id) and limits["min"] <= len(id) <= limits["max"]:
        count.scale_on_schedule(id, schedule=schedule, min_capacity=2)
        return
    with messages.raises(ConfigurationError) as caught:
        count.scale_on_schedule(id, schedule=schedule, min_capacity=2)
    assert "1 to 256 characters" in str(caught.value)
