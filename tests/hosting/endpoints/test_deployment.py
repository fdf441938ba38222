"""How an endpoint is updated: deployment policies, rollback alarms, and what scaling has set."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from cdk_triton import TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import AllAtOnce, Canary, Capacity, DeploymentPolicy, Linear, Rolling

if TYPE_CHECKING:
    from tests.hosting.conftest import World

ENDPOINT = "AWS::SageMaker::Endpoint"
MINUTE = cdk.Duration.minutes(1)
TEN = Capacity(10)


@pytest.fixture(name="model")
def _model(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)


def four(model: TritonModel, name: str = "AllTraffic") -> TritonVariant:
    return TritonVariant(model=model, variant_name=name, initial_instance_count=4)


def outside_alarm(stack: cdk.Stack, id: str = "Outside") -> cloudwatch.IAlarm:  # noqa: A002
    arn = f"arn:aws:cloudwatch:us-east-1:111122223333:alarm:{id}"
    return cloudwatch.Alarm.from_alarm_arn(stack, id, arn)


def properties(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, ENDPOINT)["Properties"]
    return found


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "rendered"),
        [
            pytest.param(
                AllAtOnce(termination_wait=cdk.Duration.minutes(10), maximum_time=cdk.Duration.minutes(30)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
                        "TerminationWaitInSeconds": 600,
                        "MaximumExecutionTimeoutInSeconds": 1800,
                    }
                },
                id="all at once",
            ),
            pytest.param(
                Canary(size=Capacity(30), wait=cdk.Duration.minutes(10)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {
                            "Type": "CANARY",
                            "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 30},
                            "WaitIntervalInSeconds": 600,
                        },
                    }
                },
                id="canary",
            ),
            pytest.param(
                Linear(step=Capacity(instances=2), wait=MINUTE, termination_wait=cdk.Duration.seconds(0)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {
                            "Type": "LINEAR",
                            "LinearStepSize": {"Type": "INSTANCE_COUNT", "Value": 2},
                            "WaitIntervalInSeconds": 60,
                        },
                        "TerminationWaitInSeconds": 0,
                    }
                },
                id="linear",
            ),
            pytest.param(
                Rolling(batch=Capacity(5), wait=MINUTE, rollback_batch=Capacity(100)),
                {
                    "RollingUpdatePolicy": {
                        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 5},
                        "WaitIntervalInSeconds": 60,
                        "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
                    }
                },
                id="rolling",
            ),
        ],
    )
    def test_a_policy_is_what_sagemaker_documents(
        self,
        world: World,
        stack: cdk.Stack,
        model: TritonModel,
        policy: DeploymentPolicy,
        rendered: dict[str, Any],
    ) -> None:
        TritonEndpoint(stack, "Endpoint", variants=[four(model)], deployment=policy)

        assert properties(world, stack)["DeploymentConfig"] == rendered

    def test_without_one_nothing_is_said(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=model)

        assert set(properties(world, stack)) == {"EndpointConfigName"}

    def test_policies_are_values(self) -> None:
        one, other = (Canary(size=Capacity(percent=10), wait=MINUTE, alarms=[]) for _ in range(2))
        assert one.size == other.size == TEN
        with pytest.raises(AttributeError):
            one.wait = MINUTE  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Capacity(), "says both or nothing: give either percent or instances"),
            (lambda: Capacity(10, instances=1), "says both or nothing: give either percent or instances"),
            (lambda: Capacity(0), "percent of a Capacity is 0: use a whole number, 1 to 100"),
            (lambda: Capacity(101), "percent of a Capacity is 101: use a whole number, 1 to 100"),
            (lambda: Capacity(2.5), "percent of a Capacity is 2.5: use a whole"),  # type: ignore[arg-type]
            (lambda: Capacity(instances=0), "instances of a Capacity is 0: use a whole number, at least 1"),
            (lambda: Capacity(instances=True), "instances of a Capacity is True"),
            (lambda: Canary(size=Capacity(51), wait=MINUTE), "size of Canary is 51 %: SageMaker takes 1 to 50 %"),
            (lambda: Linear(step=Capacity(9), wait=MINUTE), "step of Linear is 9 %: SageMaker takes 10 to 50 %"),
            (lambda: Rolling(batch=Capacity(4), wait=MINUTE), "batch of Rolling is 4 %: SageMaker takes 5 to 50 %"),
            (
                lambda: Canary(size=TEN, wait=cdk.Duration.seconds(3601)),
                "wait of Canary is 3601 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: Rolling(batch=TEN, wait=cdk.Duration.millis(1500)),
                "wait of Rolling is 1.5 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: Canary(size=TEN, wait=600),  # type: ignore[arg-type]
                r"wait of Canary is 600, an int: use a Duration of the CDK's, such as Duration.minutes\(10\)",
            ),
            (
                lambda: Canary(size=10, wait=MINUTE),  # type: ignore[arg-type]
                r"size of Canary is 10, an int: use a share of the instances in percent, such as Capacity\(25\)",
            ),
            (
                lambda: AllAtOnce(termination_wait=cdk.Duration.hours(2)),
                "termination_wait of AllAtOnce is 7200 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: AllAtOnce(maximum_time=cdk.Duration.seconds(599)),
                "maximum_time of AllAtOnce is 599 seconds: SageMaker takes whole ones, 600 to 28800",
            ),
            (
                lambda: AllAtOnce(maximum_time=cdk.Duration.hours(9)),
                "maximum_time of AllAtOnce is 32400 seconds: SageMaker takes whole ones, 600 to 28800",
            ),
            (
                lambda: Canary(
                    size=TEN,
                    wait=cdk.Duration.minutes(10),
                    termination_wait=cdk.Duration.minutes(10),
                    maximum_time=cdk.Duration.minutes(20),
                ),
                "maximum_time of Canary is 1200 seconds and its waiting takes 1200, so that every update",
            ),
            (
                lambda: Linear(step=TEN, wait=cdk.Duration.minutes(10), maximum_time=cdk.Duration.hours(1)),
                "maximum_time of Linear is 3600 seconds and its waiting takes 5400",
            ),
            (
                lambda: Rolling(batch=Capacity(5), wait=MINUTE, maximum_time=cdk.Duration.minutes(15)),
                "maximum_time of Rolling is 900 seconds and its waiting takes 1140",
            ),
        ],
    )
    def test_what_sagemaker_would_refuse_is_refused(self, make: Callable[[], object], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            make()

    def test_the_limits_themselves_are_taken(self) -> None:
        hour = cdk.Duration.hours(1)
        Canary(size=Capacity(50), wait=hour, termination_wait=hour, maximum_time=cdk.Duration.seconds(7201))
        Linear(step=Capacity(50), wait=hour, maximum_time=cdk.Duration.hours(8))
        Rolling(batch=Capacity(instances=50), wait=cdk.Duration.seconds(0), maximum_time=cdk.Duration.minutes(10))

    def test_a_token_is_taken_where_only_the_deployment_knows(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
        policy = Linear(
            step=Capacity(percent=number),  # type: ignore[arg-type]
            wait=cdk.Duration.seconds(number),
            maximum_time=cdk.Duration.minutes(10),
        )
        TritonEndpoint(stack, "Endpoint", variants=[four(model)], deployment=policy)

        routing = properties(world, stack)["DeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
        assert routing["LinearStepSize"]["Value"] == routing["WaitIntervalInSeconds"] == {"Ref": "Number"}


class TestWhatFitsTheEndpoint:
    def test_rolling_is_for_one_variant(self, stack: cdk.Stack, model: TritonModel) -> None:
        with pytest.raises(ConfigurationError, match="Stack/Endpoint has 2 variants and is updated by Rolling"):
            TritonEndpoint(
                stack,
                "Endpoint",
                variants=[four(model, "Blue"), four(model, "Green")],
                deployment=Rolling(batch=TEN, wait=MINUTE),
            )
        assert stack.node.try_find_child("Endpoint") is None

    def test_a_canary_has_several_variants_as_well(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        variants = [four(model, "Blue"), four(model, "Green")]
        TritonEndpoint(stack, "Endpoint", variants=variants, deployment=Canary(size=TEN, wait=MINUTE))

        assert "DeploymentConfig" in properties(world, stack)


class TestAlarms:
    policy = AllAtOnce(termination_wait=cdk.Duration.minutes(5))

    def test_alarms_of_the_endpoints_own_metrics_come_before_it(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        alarm = endpoint.metric_invocations().create_alarm(endpoint, "Busy", threshold=1, evaluation_periods=1)

        endpoint.add_rollback_alarms(alarm)

        (name,) = world.resources(stack, "AWS::CloudWatch::Alarm")  # Template.from_stack refuses a cycle
        assert properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"] == {
            "Alarms": [{"AlarmName": {"Ref": name}}]
        }
        dimensions = world.only(stack, "AWS::CloudWatch::Alarm")["Properties"]["Dimensions"]
        assert {"Name": "EndpointName", "Value": "search"} in dimensions

    def test_a_generated_name_would_make_a_cycle(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, deployment=self.policy)
        alarm = endpoint.metric_invocations().create_alarm(endpoint, "Busy", threshold=1, evaluation_periods=1)

        with pytest.raises(ConfigurationError, match=r"no literal endpoint_name: .* circular dependency .* give"):
            endpoint.add_rollback_alarms(alarm)

        l1 = endpoint.node.default_child
        assert isinstance(l1, cdk.CfnResource)
        l1.add_property_override("Tags", [{"Key": "alarm", "Value": alarm.alarm_name}])
        with pytest.raises(RuntimeError, match="cycle"):
            Template.from_stack(stack)

    def test_an_alarm_is_named_once(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        alarm = outside_alarm(stack)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[alarm, alarm])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=policy)
        endpoint.add_rollback_alarms(alarm)

        rollback = properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"]
        assert rollback == {"Alarms": [{"AlarmName": "Outside"}]}

    def test_a_composite_alarm_and_none_are_refused(self, stack: cdk.Stack, model: TritonModel) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        rule = cloudwatch.AlarmRule.from_alarm(outside_alarm(stack), cloudwatch.AlarmState.ALARM)
        composite = cloudwatch.CompositeAlarm(stack, "Composite", alarm_rule=rule)

        with pytest.raises(ConfigurationError, match="the alarm Stack/Composite is a composite one"):
            endpoint.add_rollback_alarms(composite)
        with pytest.raises(ConfigurationError, match="Stack/Endpoint is given no rollback alarm"):
            endpoint.add_rollback_alarms()

    @pytest.mark.parametrize("nested", [False, True], ids=["same stack", "nested stack"])
    @pytest.mark.parametrize("expression", [False, True], ids=["metric", "expression"])
    def test_an_alarm_that_comes_after_the_endpoint_is_refused(
        self, stack: cdk.Stack, model: TritonModel, expression: bool, nested: bool
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        dimensions = {"EndpointName": endpoint.endpoint_name, "VariantName": "AllTraffic"}
        metric = cloudwatch.Metric(namespace="AWS/SageMaker", metric_name="Invocations", dimensions_map=dimensions)
        watched = cloudwatch.MathExpression(expression="m * 2", using_metrics={"m": metric}) if expression else metric
        scope = cdk.NestedStack(stack, "Nested") if nested else stack
        alarm = cloudwatch.Alarm(scope, "Busy", metric=watched, threshold=1, evaluation_periods=1)

        with pytest.raises(ConfigurationError, match=f"the alarm {alarm.node.path} names the endpoint by an attribut"):
            endpoint.add_rollback_alarms(alarm)

    def test_an_alarm_that_names_the_endpoint_by_its_logical_id_is_refused(
        self, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        l1 = endpoint.node.default_child
        assert isinstance(l1, cdk.CfnResource)
        name = cdk.Fn.get_att(str(stack.resolve(l1.logical_id)), "EndpointName").to_string()
        metric = cloudwatch.Metric(namespace="Own", metric_name="Busy", dimensions_map={"EndpointName": name})
        alarm = cloudwatch.Alarm(stack, "Busy", metric=metric, threshold=1, evaluation_periods=1)

        with pytest.raises(ConfigurationError, match=r"the alarm Stack/Busy names the endpoint by an attribut"):
            endpoint.add_rollback_alarms(alarm)

    def test_an_alarm_may_name_another_endpoint_by_an_attribute(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        other = TritonEndpoint(stack, "Other", model=model)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        alarm = other.metric_invocations().create_alarm(stack, "Busy", threshold=1, evaluation_periods=1)
        endpoint.add_rollback_alarms(alarm)

        assert world.resources(stack, "AWS::CloudWatch::Alarm")  # and no cycle

    @pytest.mark.parametrize(
        ("region", "account", "message"),
        [
            (
                "us-east-1",
                "111122223333",
                "Busy is in the region us-east-1 and Stack/Endpoint in eu-west-1, where Sage",
            ),
            ("eu-west-1", "444455556666", "Busy is in the account 444455556666 and Stack/Endpoint in 111122223333, wh"),
        ],
    )
    @pytest.mark.parametrize("imported", [False, True], ids=["made", "imported"])
    def test_an_alarm_of_another_environment_is_refused(
        self, world: World, region: str, account: str, message: str, imported: bool
    ) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        other = cdk.Stack(app, "Other", env=cdk.Environment(account=account, region=region))
        made = endpoint.metric_invocations().create_alarm(other, "Busy", threshold=1, evaluation_periods=1)
        arn = f"arn:aws:cloudwatch:{region}:{account}:alarm:Busy"

        with pytest.raises(ConfigurationError, match=message):
            endpoint.add_rollback_alarms(cloudwatch.Alarm.from_alarm_arn(stack, "Busy", arn) if imported else made)

    def test_an_imported_alarm_is_where_its_arn_says(self, world: World) -> None:
        app = world.app()
        here = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="us-east-1"))
        model = TritonModel(here, "Model", repository=world.repository(), platform=world.platform)
        elsewhere = cdk.Stack(app, "Other", env=cdk.Environment(account="444455556666", region="eu-west-1"))
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(elsewhere)])
        TritonEndpoint(here, "Endpoint", model=model, endpoint_name="search", deployment=policy)

        rollback = properties(world, here)["DeploymentConfig"]["AutoRollbackConfiguration"]
        assert rollback == {"Alarms": [{"AlarmName": "Outside"}]}

    def test_an_alarm_may_watch_the_new_instances_alone(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=self.policy)
        dimensions = {**endpoint.metric_dimensions, "EndpointConfigName": endpoint.endpoint_config_name}
        metric = cloudwatch.Metric(namespace="AWS/SageMaker", metric_name="ModelLatency", dimensions_map=dimensions)
        endpoint.add_rollback_alarms(metric.create_alarm(stack, "Slow", threshold=1, evaluation_periods=1))

        (config,) = world.resources(stack, "AWS::SageMaker::EndpointConfig")  # and no cycle
        found = world.only(stack, "AWS::CloudWatch::Alarm")["Properties"]["Dimensions"]
        assert {"Name": "EndpointConfigName", "Value": {"Fn::GetAtt": [config, "EndpointConfigName"]}} in found

    def test_a_name_from_a_parameter_is_not_known_here(self, stack: cdk.Stack, model: TritonModel) -> None:
        name = cdk.CfnParameter(stack, "Name").value_as_string
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])

        with pytest.raises(ConfigurationError, match="Stack/Endpoint has rollback alarms and no literal endpoint_name"):
            TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=name, deployment=policy)

    def test_the_execution_role_may_look_at_the_alarms(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        first, second = outside_alarm(stack, "First"), outside_alarm(stack, "Second")
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[first])
        TritonEndpoint(
            stack, "Endpoint", variants=[four(model, "A"), four(model, "B")], endpoint_name="search", deployment=policy
        ).add_rollback_alarms(second)

        policies = world.resources(stack, "AWS::IAM::ManagedPolicy")
        ((name, found),) = ((n, p) for n, p in policies.items() if n.startswith("EndpointRollbackAlarms"))
        (statement,) = found["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Action"] == "cloudwatch:DescribeAlarms"
        assert statement["Resource"] == [first.alarm_arn, second.alarm_arn]
        assert len(found["Properties"]["Roles"]) == 1
        watched = properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
        assert watched == [{"AlarmName": "First"}, {"AlarmName": "Second"}]
        assert name in world.only(stack, ENDPOINT)["DependsOn"]

    def test_alarms_without_a_policy_that_waits_are_refused(self, stack: cdk.Stack, model: TritonModel) -> None:
        alarm = outside_alarm(stack)
        with pytest.raises(ConfigurationError, match="AllAtOnce has alarms and no waiting time"):
            AllAtOnce(alarms=[alarm])
        with pytest.raises(ConfigurationError, match="Canary has alarms and no waiting time"):
            Canary(size=TEN, wait=cdk.Duration.seconds(0), alarms=[alarm])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search")
        with pytest.raises(ConfigurationError, match="Stack/Endpoint has rollback alarms and no deployment policy"):
            endpoint.add_rollback_alarms(alarm)

    def test_ten_alarms_are_watched_and_no_more(self, stack: cdk.Stack, model: TritonModel) -> None:
        alarms = [outside_alarm(stack, f"Alarm{number}") for number in range(11)]
        with pytest.raises(ConfigurationError, match="AllAtOnce has 11 alarms, and SageMaker watches at most 10"):
            AllAtOnce(termination_wait=MINUTE, alarms=alarms)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=alarms[:10])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=policy)
        with pytest.raises(ConfigurationError, match="AllAtOnce has 11 alarms"):
            endpoint.add_rollback_alarms(alarms[10])

    def test_a_role_that_nobody_changes_stays_as_it_is(self, world: World, stack: cdk.Stack) -> None:
        arn = "arn:aws:iam::111122223333:role/theirs"
        role = iam.Role.from_role_arn(stack, "Theirs", arn, mutable=False)
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=policy)

        policies = {**world.resources(stack, "AWS::IAM::Policy"), **world.resources(stack, "AWS::IAM::ManagedPolicy")}
        assert "theirs" not in json.dumps(policies)

    def test_a_users_role_gets_an_inline_policy(self, world: World, stack: cdk.Stack) -> None:
        role = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment=policy)

        (name,) = (n for n in world.resources(stack, "AWS::IAM::Policy") if n.startswith("EndpointRollbackAlarms"))
        assert name in world.only(stack, ENDPOINT)["DependsOn"]


class TestScaledVariants:
    retained: ClassVar[dict[str, Any]] = {
        "RetainAllVariantProperties": True,
        "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}],
    }

    def test_an_update_keeps_counts_and_sets_weights_as_soon_as_a_variant_is_scaled(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[four(model, "Blue"), four(model, "Green")])
        endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=8)

        assert properties(world, stack).items() >= self.retained.items()

    @pytest.mark.parametrize("value", [False, "false"])
    def test_the_context_leaves_it_out_where_an_endpoint_is_created(self, world: World, value: object) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", value)
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        TritonEndpoint(stack, "Endpoint", model=model).auto_scale_instance_count(min_capacity=1, max_capacity=8)

        assert not properties(world, stack).keys() & self.retained.keys()

    def test_another_context_value_is_refused(self, world: World) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", "no")
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model)

        with pytest.raises(ConfigurationError, match="retainVariantProperties is 'no': use true or false"):
            endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
