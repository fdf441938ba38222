"""Updates that would not go as meant are warned of, when the app is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Annotations, Match

from cdk_triton import (
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.hosting import AllAtOnce, Canary, Capacity, DeploymentPolicy, Linear, Rolling

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

MINUTE = cdk.Duration.minutes(1)
TEN = Capacity(10)
QUARTER = Canary(size=Capacity(25), wait=MINUTE)
TWO_AT_A_TIME = Linear(step=Capacity(instances=2), wait=MINUTE)
BATCHES = Rolling(batch=Capacity(instances=1), wait=MINUTE)


def on(model: TritonModel, count: int = 4, name: str = "AllTraffic") -> TritonVariant:
    return TritonVariant(model=model, variant_name=name, initial_instance_count=count)


def warnings(stack: cdk.Stack, name: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"ack: cdk-triton:{name}\]"))
    return [str(each.entry.data) for each in found]


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


class TestSteps:
    @pytest.mark.parametrize(
        ("count", "policy", "needed"),
        [
            pytest.param(1, QUARTER, {"2"}, id="1 in quarters"),
            pytest.param(3, TWO_AT_A_TIME, {"4", "20"}, id="3 in twos"),
            pytest.param(21, TWO_AT_A_TIME, {"4", "20"}, id="21 in twos"),
            pytest.param(1, BATCHES, {"2", "20"}, id="1 in batches of 1"),
            pytest.param(21, BATCHES, {"2", "20"}, id="21 in batches of 1"),
            pytest.param(2, Canary(size=Capacity(50), wait=MINUTE), None, id="2 in halves"),
            pytest.param(20, TWO_AT_A_TIME, None, id="20 in twos"),
            pytest.param(1, AllAtOnce(), None, id="1 at once"),
        ],
    )
    def test_a_step_that_does_not_fit_the_instances_is_warned_of(
        self,
        messages: Messages,
        stack: cdk.Stack,
        model: TritonModel,
        count: int,
        policy: DeploymentPolicy,
        needed: set[str] | None,
    ) -> None:
        TritonEndpoint(stack, "Endpoint", variants=[on(model, count)], deployment_policy=policy)

        found = warnings(stack, "UpdateStep")
        assert len(found) == (needed is not None)
        for warning in found:
            messages.record("cdk-triton:UpdateStep", warning)
            assert numbers(warning) >= (needed or set())

    @pytest.mark.parametrize(
        ("count", "limits", "policy", "reached"),
        [
            pytest.param(4, (1, 8), QUARTER, 1, id="1 to 8 in quarters"),
            pytest.param(4, (4, 21), TWO_AT_A_TIME, 21, id="4 to 21 in twos"),
            pytest.param(4, (1, 21), TWO_AT_A_TIME, 1, id="1 to 21 in twos"),
            pytest.param(4, (4, 20), TWO_AT_A_TIME, None, id="4 to 20 in twos"),
            pytest.param(2, (2, 8), QUARTER, None, id="2 to 8 in quarters"),
        ],
    )
    def test_scaling_decides_how_many_there_are(
        self,
        messages: Messages,
        stack: cdk.Stack,
        model: TritonModel,
        count: int,
        limits: tuple[int, int],
        policy: DeploymentPolicy,
        reached: int | None,
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, count)], deployment_policy=policy)
        endpoint.auto_scale_instance_count(min_capacity=limits[0], max_capacity=limits[1])

        found = warnings(stack, "UpdateStep")
        assert len(found) == (reached is not None)
        for warning in found:
            messages.record("cdk-triton:UpdateStep", warning)
            assert str(reached) in numbers(warning)

    def test_so_does_a_schedule(self, messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model)], deployment_policy=QUARTER)
        count = endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=8)
        count.scale_on_schedule("Night", schedule=autoscaling.Schedule.cron(hour="22", minute="0"), min_capacity=1)

        (warning,) = warnings(stack, "UpdateStep")
        messages.record("cdk-triton:UpdateStep", warning)
        assert "1" in numbers(warning)

    def test_a_schedule_of_the_users_without_limits_changes_none(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model)], deployment_policy=QUARTER)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
        target = count.scalable_target.node.default_child
        assert isinstance(target, autoscaling.CfnScalableTarget)
        target.scheduled_actions = [
            autoscaling.CfnScalableTarget.ScheduledActionProperty(schedule="rate(1 day)", scheduled_action_name="None")
        ]

        (warning,) = warnings(stack, "UpdateStep")
        messages.record("cdk-triton:UpdateStep", warning)
        assert "1" in numbers(warning)

    def test_what_only_the_deployment_knows_is_not_judged(self, stack: cdk.Stack, model: TritonModel) -> None:
        number: Any = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
        variants = [on(model, number, "Given"), on(model, number, "Scaled")]
        endpoint = TritonEndpoint(stack, "Endpoint", variants=variants, deployment_policy=TWO_AT_A_TIME)
        endpoint.variant("Scaled").auto_scale_instance_count(min_capacity=4, max_capacity=number)

        assert warnings(stack, "UpdateStep") == []

    def test_a_canary_of_an_unresolved_part_is_called_so(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        percent: Any = cdk.CfnParameter(stack, "Percent", type="Number").value_as_number
        policy = Canary(size=Capacity(percent), wait=MINUTE)
        TritonEndpoint(stack, "Endpoint", variants=[on(model, 1)], deployment_policy=policy)

        (warning,) = warnings(stack, "UpdateStep")
        messages.record("cdk-triton:UpdateStep", warning)
        assert "Canary with a first step of an unresolved size" in warning


class TestAlarms:
    def endpoint(self, stack: cdk.Stack, model: TritonModel, policy: DeploymentPolicy) -> TritonEndpoint:
        return TritonEndpoint(stack, "Endpoint", variants=[on(model)], endpoint_name="search", deployment_policy=policy)

    def test_a_wait_that_nobody_watches_is_warned_of(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        self.endpoint(stack, model, AllAtOnce(termination_wait=MINUTE))

        (warning,) = warnings(stack, "UpdateWithoutAlarms")
        messages.record("cdk-triton:UpdateWithoutAlarms", warning)

    @pytest.mark.parametrize("later", [False, True], ids=["in the policy", "later"])
    def test_a_wait_with_an_alarm_is_not(self, stack: cdk.Stack, model: TritonModel, later: bool) -> None:
        arn = "arn:aws:cloudwatch:us-east-1:111122223333:alarm:Outside"
        alarms: Sequence[cloudwatch.IAlarm] = [cloudwatch.Alarm.from_alarm_arn(stack, "Outside", arn)]
        endpoint = self.endpoint(stack, model, AllAtOnce(termination_wait=MINUTE, alarms=[] if later else alarms))
        if later:
            endpoint.roll_back_on(*alarms)

        assert warnings(stack, "UpdateWithoutAlarms") == []
        assert warnings(stack, "RollbackAlarmTooSlow") == []  # of an imported one nothing is known

    @pytest.mark.parametrize(
        ("policy", "watched"),
        [
            (AllAtOnce(termination_wait=cdk.Duration.minutes(14)), "14 minutes"),
            (Canary(size=TEN, wait=cdk.Duration.minutes(10)), "10 minutes"),
            (Canary(size=TEN, wait=cdk.Duration.minutes(10), termination_wait=cdk.Duration.minutes(6)), None),
            (AllAtOnce(termination_wait=cdk.Duration.minutes(15)), "15 minutes"),  # which is not longer
            (Linear(step=Capacity(25), wait=cdk.Duration.minutes(3)), "12 minutes"),
            (Linear(step=Capacity(25), wait=cdk.Duration.minutes(3), termination_wait=cdk.Duration.minutes(4)), None),
            (Linear(step=Capacity(instances=2), wait=cdk.Duration.minutes(7)), "14 minutes"),  # of 4 instances
            (Rolling(batch=Capacity(instances=2), wait=cdk.Duration.seconds(90)), "3 minutes"),
            (Rolling(batch=Capacity(50), wait=cdk.Duration.minutes(8)), None),
        ],
        ids=[
            "AllAtOnce",
            "Canary",
            "Canary long enough",
            "AllAtOnce by nothing",
            "Linear",
            "Linear long enough",
            "Linear of instances",
            "Rolling",
            "Rolling long enough",
        ],
    )
    def test_an_alarm_that_goes_off_after_the_update_is_warned_of(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, policy: DeploymentPolicy, watched: str | None
    ) -> None:
        endpoint = self.endpoint(stack, model, policy)
        metric = endpoint.metric_model_latency(period=cdk.Duration.minutes(5))
        alarm = metric.create_alarm(stack, "Slow", threshold=1, evaluation_periods=5, datapoints_to_alarm=3)
        endpoint.roll_back_on(alarm)

        found = warnings(stack, "RollbackAlarmTooSlow")
        assert len(found) == (watched is not None)
        for warning in found:
            messages.record("cdk-triton:RollbackAlarmTooSlow", warning)
            assert f" {watched} " in warning

    def test_all_periods_count_where_no_datapoints_are_said_and_those_of_an_expression(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = self.endpoint(stack, model, AllAtOnce(termination_wait=cdk.Duration.minutes(3)))
        twice = cloudwatch.MathExpression(
            expression="2 * m", using_metrics={"m": endpoint.metric_invocations()}, period=cdk.Duration.minutes(2)
        )
        endpoint.roll_back_on(twice.create_alarm(stack, "Busy", threshold=1, evaluation_periods=2))

        (warning,) = warnings(stack, "RollbackAlarmTooSlow")
        messages.record("cdk-triton:RollbackAlarmTooSlow", warning)
        assert "2 minutes" in warning

    def test_several_slow_alarms_are_one_warning(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = self.endpoint(stack, model, AllAtOnce(termination_wait=cdk.Duration.minutes(10)))
        alarms = endpoint.monitor().variants["AllTraffic"]
        endpoint.roll_back_on(alarms.server_errors, [alarms.memory, alarms.disk])

        (warning,) = warnings(stack, "RollbackAlarmTooSlow")
        messages.record("cdk-triton:RollbackAlarmTooSlow", warning)
        assert all(name in warning for name in ("Memory", "Disk"))
        assert "ServerErrors" not in warning

    @pytest.mark.parametrize("minutes", ["wait", "instances"])
    def test_waits_that_only_the_deployment_knows_are_not_judged(
        self, stack: cdk.Stack, model: TritonModel, minutes: str
    ) -> None:
        number: Any = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
        wait = cdk.Duration.seconds(number) if minutes == "wait" else MINUTE
        step = Capacity(instances=number) if minutes == "instances" else TEN
        endpoint = self.endpoint(stack, model, Linear(step=step, wait=wait))
        alarm = endpoint.metric_invocations().create_alarm(stack, "Busy", threshold=1, evaluation_periods=60)
        endpoint.roll_back_on(alarm)

        assert warnings(stack, "RollbackAlarmTooSlow") == []

    def test_the_alarms_of_monitor_that_the_guide_takes_fit_its_canary(
        self, stack: cdk.Stack, model: TritonModel
    ) -> None:
        five, ten = (cdk.Duration.minutes(minutes) for minutes in (5, 10))
        endpoint = self.endpoint(stack, model, Canary(size=Capacity(25), wait=ten, termination_wait=five))
        monitoring = endpoint.monitor()
        endpoint.roll_back_on(monitoring.errors, monitoring.latency)

        assert warnings(stack, "RollbackAlarmTooSlow") == []

    def test_an_alarm_that_another_stack_exports_cannot_go(self, messages: Messages, world: World) -> None:
        app = world.app()
        alarms, stack = cdk.Stack(app, "Alarms"), cdk.Stack(app, "Search")
        store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
        model = TritonModel(stack, "Model", store=store, repository=world.repository(), platform=world.platform)
        endpoint = self.endpoint(stack, model, AllAtOnce(termination_wait=cdk.Duration.minutes(5)))
        metric = endpoint.metric_invocations()
        endpoint.roll_back_on(metric.create_alarm(alarms, "Busy", threshold=1, evaluation_periods=1))
        app.synth()

        assert "Fn::ImportValue" in json.dumps(world.only(stack, "AWS::SageMaker::Endpoint"))
        (warning,) = warnings(stack, "AlarmInAnotherStack")
        messages.record("cdk-triton:AlarmInAnotherStack", warning)

    def test_an_imported_or_nested_alarm_of_another_stack_is_fine(self, world: World) -> None:
        app = world.app()
        stack, other = cdk.Stack(app, "Stack"), cdk.Stack(app, "Other")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = self.endpoint(stack, model, AllAtOnce(termination_wait=cdk.Duration.minutes(5)))
        nested = cdk.NestedStack(stack, "Nested")
        arn = "arn:aws:cloudwatch:us-east-1:111122223333:alarm:Outside"
        endpoint.roll_back_on(
            endpoint.metric_invocations().create_alarm(nested, "Busy", threshold=1, evaluation_periods=1),
            cloudwatch.Alarm.from_alarm_arn(other, "Outside", arn),
        )

        assert warnings(stack, "AlarmInAnotherStack") == []


def test_guardrails_of_a_fleet_are_warned_of(messages: Messages, world: World, stack: cdk.Stack) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=fleet, deployment_policy=AllAtOnce())

    (warning,) = warnings(stack, "GuardrailsOfMultiModel")
    messages.record("cdk-triton:GuardrailsOfMultiModel", warning)


class TestKeptCounts:
    def test_a_variant_beside_a_scaled_one_is_warned_of(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, 1, name) for name in ("Blue", "Green", "Red")])
        endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=1)

        (warning,) = warnings(stack, "InstanceCountKept")
        messages.record("cdk-triton:InstanceCountKept", warning)
        assert "'Blue' and 'Red'" in warning

    @pytest.mark.parametrize("scaled", [(), ("Green", "Blue")], ids=["none", "all"])
    def test_where_all_or_none_are_scaled_nothing_is(
        self, stack: cdk.Stack, model: TritonModel, scaled: tuple[str, ...]
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, 1, name) for name in ("Blue", "Green")])
        for name in scaled:
            endpoint.variant(name).auto_scale_instance_count(min_capacity=1, max_capacity=1)

        assert warnings(stack, "InstanceCountKept") == []

    @pytest.mark.parametrize(("scaled", "fixed"), [("Shadow", "AllTraffic"), ("AllTraffic", "Shadow")])
    def test_a_shadow_counts_as_well(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, scaled: str, fixed: str
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, 1)], shadow=on(model, 1, "Shadow"))
        endpoint.variant(scaled).auto_scale_instance_count(min_capacity=1, max_capacity=1)

        (warning,) = warnings(stack, "InstanceCountKept")
        messages.record("cdk-triton:InstanceCountKept", warning)
        assert f"({scaled!r})" in warning
        assert fixed in warning

    def test_counts_that_the_user_keeps_are_warned_of_without_any_scaling(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, 1, name) for name in ("Blue", "Green")])
        resource = endpoint.node.default_child
        assert isinstance(resource, sagemaker.CfnEndpoint)
        resource.retain_all_variant_properties = True

        (warning,) = warnings(stack, "InstanceCountKept")
        messages.record("cdk-triton:InstanceCountKept", warning)
        assert "'Blue' and 'Green'" in warning

    def test_counts_that_are_not_kept_are_not(self, world: World) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", False)
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[on(model, 1, name) for name in ("Blue", "Green")])
        endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=1)

        assert warnings(stack, "InstanceCountKept") == []
