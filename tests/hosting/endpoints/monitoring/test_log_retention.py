"""`TritonEndpoint.monitor`: how long the logs of the containers are kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

from cdk_triton import (
    TritonEndpoint,
    TritonModel,
)
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.monitoring.log_retention import DAYS

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def test_a_schedule_sets_the_retention_of_the_group_that_sagemaker_makes(
    world: World, stack: cdk.Stack, model: TritonModel, flattened: Any
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor(log_retention=logs.RetentionDays.ONE_MONTH)

    schedule = world.only(stack, "AWS::Scheduler::Schedule")["Properties"]
    name = "<EndpointEEF1FD8F.EndpointName>"
    assert schedule["ScheduleExpression"] == "rate(1 day)"
    assert flattened(schedule["Target"]["Arn"]) == (
        "arn:<AWS::Partition>:scheduler:::aws-sdk:cloudwatchlogs:putRetentionPolicy"
    )
    assert json.loads(flattened(schedule["Target"]["Input"])) == {
        "LogGroupName": f"/aws/sagemaker/Endpoints/{name}",
        "RetentionInDays": 30,
    }


def test_its_role_may_do_that_and_nothing_else(
    world: World, stack: cdk.Stack, model: TritonModel, flattened: Any
) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    (policy_id, policy), *_ = (
        (name, each["Properties"])
        for name, each in world.resources(stack, "AWS::IAM::ManagedPolicy").items()
        if name.startswith("EndpointMonitoring")
    )
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], flattened(statement["Resource"])) == (
        "logs:PutRetentionPolicy",
        "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:"
        "/aws/sagemaker/Endpoints/<EndpointEEF1FD8F.EndpointName>:*",
    )
    assert policy_id in world.only(stack, "AWS::Scheduler::Schedule")["DependsOn"]


def test_only_the_scheduler_of_this_account_gets_the_role(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor()

    (role,) = (
        each["Properties"]
        for name, each in world.resources(stack, "AWS::IAM::Role").items()
        if name.startswith("EndpointMonitoring")
    )
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_logs_may_be_kept_for_ever(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    TritonEndpoint(stack, "Endpoint", model=model).monitor(log_retention=logs.RetentionDays.INFINITE)

    assert not world.resources(stack, "AWS::Scheduler::Schedule")


@pytest.mark.parametrize("wrong", [90, cdk.Duration.days(90)], ids=["a number", "a Duration"])
def test_a_retention_that_is_none_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel, wrong: Any
) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)

    with messages.raises(ConfigurationError):
        endpoint.monitor(log_retention=wrong)


def test_the_days_are_those_of_the_cdk(stack: cdk.Stack) -> None:
    assert set(DAYS) == set(logs.RetentionDays) - {logs.RetentionDays.INFINITE}
    for retention, days in DAYS.items():
        group = logs.LogGroup(stack, retention.name, retention=retention)
        assert stack.resolve(cast(logs.CfnLogGroup, group.node.default_child).retention_in_days) == days
