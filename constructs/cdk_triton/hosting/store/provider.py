"""CDK's provider framework around the store's two handlers, with no more permissions than it uses."""

from __future__ import annotations

from functools import cache

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import custom_resources as cr
from constructs import Construct

from cdk_triton.hosting.acknowledgements import acknowledge, acknowledge_nist
from cdk_triton.hosting.permissions import Statement, allow

__all__ = ["lambda_role", "log_writing", "provider"]

QUERY_INTERVAL = Duration.seconds(30)
TOTAL_TIMEOUT = Duration.minutes(55)
"""A custom resource cannot outlive an hour, although the Provider accepts more (aws/aws-cdk#24974)."""

UNAVOIDABLE = {
    "LambdaConcurrency": "Lambda refuses a reservation that leaves an account fewer than 100 unreserved executions, "
    "and a new account has 10 in all; CDK's provider framework has no option for it.",
    "LambdaDLQ": "Lambda sends only asynchronous events to a dead-letter queue. The framework calls the handlers "
    "synchronously and has no option for a queue of its own; CloudFormation reports an event that nobody answers.",
    "LambdaInsideVPC": "The role of a function in a VPC needs ec2 actions on every resource, which AwsSolutions-IAM5 "
    "forbids. The functions call APIs of AWS only, which IAM restricts.",
}
"""What NIST 800-53 R5 asks of the functions, rule by rule, and why they do not have it."""


def provider(
    scope: Construct, on_event: lambda_.Function, is_complete: lambda_.Function, log_group: logs.LogGroup
) -> cr.Provider:
    """The child `Provider`, with the roles `ProviderOnEventRole` and `ProviderIsCompleteRole` beside it.

    They may call the two handlers and not, as CDK would grant, each of their versions.
    """
    starter, caller = (lambda_role(scope, f"Provider{name}Role") for name in ("OnEvent", "IsComplete"))
    made = cr.Provider(
        scope,
        "Provider",
        on_event_handler=on_event,
        is_complete_handler=is_complete,
        query_interval=QUERY_INTERVAL,
        total_timeout=TOTAL_TIMEOUT,
        log_group=log_group,
        framework_on_event_role=starter.without_policy_updates(),
        framework_complete_and_timeout_role=caller.without_policy_updates(),
    )
    handlers = [on_event.function_arn, is_complete.function_arn]
    calling = [
        log_writing(log_group),
        Statement(actions=["lambda:GetFunction", "lambda:InvokeFunction"], resources=handlers),
    ]
    waiter_arn = _restrict_waiter(made)
    allow(starter, *calling, Statement(actions=["states:StartExecution"], resources=[waiter_arn]))
    allow(caller, *calling)
    for function in (made, on_event, is_complete):
        acknowledge_nist(function, UNAVOIDABLE)
    return made


def lambda_role(
    scope: Construct,
    id: str,  # noqa: A002 - CDK's name
) -> iam.Role:
    """A role for a function, which is allowed nothing yet."""
    return iam.Role(scope, id, assumed_by=_lambda_service())


def log_writing(log_group: logs.LogGroup) -> Statement:
    """What a function needs to write its log."""
    return Statement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn])


@cache  # a call of jsii each, and a principal is a value
def _lambda_service() -> iam.IPrincipal:
    return iam.ServicePrincipal("lambda.amazonaws.com")


def _restrict_waiter(made: cr.Provider) -> str:
    """Let the framework's waiter call the two functions that poll and give up, and nothing else; returns its ARN.

    CDK makes the waiter's role, and grants more in an inline policy of its own, which is taken away here.
    """
    framework = made.node
    waiter = framework.find_child("waiter-state-machine")
    states = waiter.node
    machine, role = states.default_child, states.find_child("Role")
    called = [framework.find_child(f"framework-{name}") for name in ("isComplete", "onTimeout")]
    functions = [function.function_arn for function in called if isinstance(function, lambda_.Function)]
    assert isinstance(machine, sfn.CfnStateMachine)  # as CDK's provider framework makes them
    assert isinstance(role, iam.Role)
    role.node.try_remove_child("DefaultPolicy")
    allow(role, Statement(actions=["lambda:InvokeFunction"], resources=functions))
    reasons = {
        "SF1": "The waiter only repeats is_complete, and the functions log every poll. Its own log would need a role "
        "with logs:PutResourcePolicy on every resource.",
        "SF2": "CDK's provider framework has no option for tracing; the waiter has one step.",
    }
    acknowledge(waiter, reasons)
    return machine.ref
