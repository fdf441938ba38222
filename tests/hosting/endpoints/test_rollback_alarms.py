"""The alarms by which an update is rolled back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from cdk_triton import EndpointMetrics, TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import AllAtOnce, Canary, Capacity

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

ENDPOINT = "AWS::SageMaker::Endpoint"
MINUTE = cdk.Duration.minutes(1)


def outside_alarm(stack: cdk.Stack, id: str = "Outside") -> cloudwatch.IAlarm:
    arn = f"arn:aws:cloudwatch:us-east-1:111122223333:alarm:{id}"
    return cloudwatch.Alarm.from_alarm_arn(stack, id, arn)


def properties(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, ENDPOINT)["Properties"]
    return found


class TestAlarms:
    policy = AllAtOnce(termination_wait=cdk.Duration.minutes(5))

    def test_alarms_of_the_endpoints_own_metrics_come_before_it(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        alarm = endpoint.metric_invocations().create_alarm(endpoint, "Busy", threshold=1, evaluation_periods=1)

        endpoint.roll_back_on(alarm)

        (name,) = world.resources(stack, "AWS::CloudWatch::Alarm")  # Template.from_stack refuses a cycle
        assert properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"] == {
            "Alarms": [{"AlarmName": {"Ref": name}}]
        }
        dimensions = world.only(stack, "AWS::CloudWatch::Alarm")["Properties"]["Dimensions"]
        assert {"Name": "EndpointName", "Value": "search"} in dimensions

    def test_a_generated_name_would_make_a_cycle(
        self, messages: Messages, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, deployment_policy=self.policy)
        alarm = endpoint.metric_invocations().create_alarm(endpoint, "Busy", threshold=1, evaluation_periods=1)

        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(alarm)

        l1 = endpoint.node.default_child
        assert isinstance(l1, cdk.CfnResource)
        l1.add_property_override("Tags", [{"Key": "alarm", "Value": alarm.alarm_name}])
        with pytest.raises(RuntimeError, match="cycle"):
            Template.from_stack(stack)

    def test_an_alarm_is_named_once(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        alarm = outside_alarm(stack)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[alarm, alarm])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)
        endpoint.roll_back_on(alarm)

        rollback = properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"]
        assert rollback == {"Alarms": [{"AlarmName": "Outside"}]}

    def test_a_composite_alarm_and_none_are_rejected(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        rule = cloudwatch.AlarmRule.from_alarm(outside_alarm(stack), cloudwatch.AlarmState.ALARM)
        composite = cloudwatch.CompositeAlarm(stack, "Composite", alarm_rule=rule)

        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(composite)
        with messages.raises(ConfigurationError):
            endpoint.roll_back_on()

    @pytest.mark.parametrize("nested", [False, True], ids=["same stack", "nested stack"])
    @pytest.mark.parametrize("expression", [False, True], ids=["metric", "expression"])
    def test_an_alarm_that_comes_after_the_endpoint_is_rejected(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel, expression: bool, nested: bool
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        dimensions = {"EndpointName": endpoint.endpoint_name, "VariantName": "AllTraffic"}
        metric = cloudwatch.Metric(namespace="AWS/SageMaker", metric_name="Invocations", dimensions_map=dimensions)
        watched = cloudwatch.MathExpression(expression="m * 2", using_metrics={"m": metric}) if expression else metric
        scope = cdk.NestedStack(stack, "Nested") if nested else stack
        alarm = cloudwatch.Alarm(scope, "Busy", metric=watched, threshold=1, evaluation_periods=1)

        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(alarm)

    def test_an_alarm_that_names_the_endpoint_by_its_logical_id_is_rejected(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        l1 = endpoint.node.default_child
        assert isinstance(l1, cdk.CfnResource)
        name = cdk.Fn.get_att(str(stack.resolve(l1.logical_id)), "EndpointName").to_string()
        metric = cloudwatch.Metric(namespace="Own", metric_name="Busy", dimensions_map={"EndpointName": name})
        alarm = cloudwatch.Alarm(stack, "Busy", metric=metric, threshold=1, evaluation_periods=1)

        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(alarm)

    def test_an_alarm_may_name_another_endpoint_by_an_attribute(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        other = TritonEndpoint(stack, "Other", model=model)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        alarm = other.metric_invocations().create_alarm(stack, "Busy", threshold=1, evaluation_periods=1)
        endpoint.roll_back_on(alarm)

        assert world.resources(stack, "AWS::CloudWatch::Alarm")  # and no cycle

    @pytest.mark.parametrize(
        ("region", "account"),
        [("us-east-1", "111122223333"), ("eu-west-1", "444455556666")],
        ids=["region", "account"],
    )
    @pytest.mark.parametrize("imported", [False, True], ids=["made", "imported"])
    def test_an_alarm_of_another_environment_is_rejected(
        self, messages: Messages, world: World, region: str, account: str, imported: bool
    ) -> None:
        app = world.app()
        stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        other = cdk.Stack(app, "Other", env=cdk.Environment(account=account, region=region))
        metric = EndpointMetrics(endpoint_name="search").metric_invocations()
        made = metric.create_alarm(other, "Busy", threshold=1, evaluation_periods=1)
        arn = f"arn:aws:cloudwatch:{region}:{account}:alarm:Busy"

        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(cloudwatch.Alarm.from_alarm_arn(stack, "Busy", arn) if imported else made)

    def test_an_imported_alarm_is_where_its_arn_says(self, world: World) -> None:
        app = world.app()
        here = cdk.Stack(app, "Stack", env=cdk.Environment(account="111122223333", region="us-east-1"))
        model = TritonModel(here, "Model", repository=world.repository(), platform=world.platform)
        elsewhere = cdk.Stack(app, "Other", env=cdk.Environment(account="444455556666", region="eu-west-1"))
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(elsewhere)])
        TritonEndpoint(here, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)

        rollback = properties(world, here)["DeploymentConfig"]["AutoRollbackConfiguration"]
        assert rollback == {"Alarms": [{"AlarmName": "Outside"}]}

    def test_an_alarm_may_watch_the_new_instances_alone(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=self.policy)
        dimensions = {**endpoint.metric_dimensions, "EndpointConfigName": endpoint.endpoint_config_name}
        metric = cloudwatch.Metric(namespace="AWS/SageMaker", metric_name="ModelLatency", dimensions_map=dimensions)
        endpoint.roll_back_on(metric.create_alarm(stack, "Slow", threshold=1, evaluation_periods=1))

        (config,) = world.resources(stack, "AWS::SageMaker::EndpointConfig")  # and no cycle
        found = world.only(stack, "AWS::CloudWatch::Alarm")["Properties"]["Dimensions"]
        assert {"Name": "EndpointConfigName", "Value": {"Fn::GetAtt": [config, "EndpointConfigName"]}} in found

    def test_a_name_from_a_parameter_is_not_known_here(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        name = cdk.CfnParameter(stack, "Name").value_as_string
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])

        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=name, deployment_policy=policy)

    def test_the_execution_role_may_look_at_the_alarms(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        first, second = outside_alarm(stack, "First"), outside_alarm(stack, "Second")
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[first])
        variants = [TritonVariant(model=model, variant_name=name, initial_instance_count=4) for name in "AB"]
        endpoint = TritonEndpoint(
            stack, "Endpoint", variants=variants, endpoint_name="search", deployment_policy=policy
        )
        endpoint.roll_back_on(second)

        policies = world.resources(stack, "AWS::IAM::ManagedPolicy")
        ((name, found),) = ((n, p) for n, p in policies.items() if n.startswith("EndpointRollbackAlarms"))
        (statement,) = found["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Action"] == "cloudwatch:DescribeAlarms"
        assert statement["Resource"] == [first.alarm_arn, second.alarm_arn]
        assert len(found["Properties"]["Roles"]) == 1
        watched = properties(world, stack)["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
        assert watched == [{"AlarmName": "First"}, {"AlarmName": "Second"}]
        assert name in world.only(stack, ENDPOINT)["DependsOn"]

    def test_alarms_without_a_policy_that_waits_are_rejected(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        alarm = outside_alarm(stack)
        with messages.raises(ConfigurationError):
            AllAtOnce(alarms=[alarm])
        with messages.raises(ConfigurationError):
            Canary(size=Capacity(10), wait=cdk.Duration.seconds(0), alarms=[alarm])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search")
        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(alarm)

    def test_ten_alarms_are_watched_and_no_more(self, messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
        alarms = [outside_alarm(stack, f"Alarm{number}") for number in range(11)]
        with messages.raises(ConfigurationError):
            AllAtOnce(termination_wait=MINUTE, alarms=alarms)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=alarms[:10])
        endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)
        with messages.raises(ConfigurationError):
            endpoint.roll_back_on(alarms[10])

    def test_a_role_that_nobody_changes_stays_as_it_is(self, world: World, stack: cdk.Stack) -> None:
        arn = "arn:aws:iam::111122223333:role/theirs"
        role = iam.Role.from_role_arn(stack, "Theirs", arn, mutable=False)
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)

        policies = {**world.resources(stack, "AWS::IAM::Policy"), **world.resources(stack, "AWS::IAM::ManagedPolicy")}
        assert "theirs" not in json.dumps(policies)

    def test_a_users_role_gets_an_inline_policy(self, world: World, stack: cdk.Stack) -> None:
        role = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)
        policy = AllAtOnce(termination_wait=MINUTE, alarms=[outside_alarm(stack)])
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", deployment_policy=policy)

        (name,) = (n for n in world.resources(stack, "AWS::IAM::Policy") if n.startswith("EndpointRollbackAlarms"))
        assert name in world.only(stack, ENDPOINT)["DependsOn"]
