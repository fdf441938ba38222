"""The provider passes requests of CloudFormation to the store's handler, with only the permissions that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from aws_cdk import Duration, SymlinkFollowMode
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk_triton._shipped import shipped_directory
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.network import Network, allow_function_network
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.access.trust import states_of_the_account
from cdk_triton.hosting.access.vpc_endpoints import await_network
from cdk_triton.hosting.naming.acknowledgements import acknowledge, acknowledge_nist, skip_checkov
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.protocol.invocation import CALL_AGAIN

__all__ = ["NOT_RUN", "HandlerFunctions", "endpoint_states", "handler_code", "lambda_role", "log_writing", "provider"]

_START_TIMEOUT = Duration.minutes(5)
"""Longer than the function tries to start the waiter: 3 minutes and the last attempt."""

WAITER_SECONDS = 58 * 60
"""For a handler that never finishes: it should give up after 50 minutes, and a custom resource has an hour."""

NOT_RUN = (
    *(f"Lambda.{error}" for error in CALL_AGAIN),
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
)
"""The errors of Step Functions if Lambda did not run or finish a function, because it is not ready yet, or because of
throttling or faults of Lambda ("Handle transient Lambda service exceptions")."""

UNAVOIDABLE = {
    "LambdaConcurrency": "Lambda rejects a reservation that leaves an account fewer than 100 unreserved executions, "
    "and a new account has 10 in all.",
    "LambdaDLQ": "Lambda sends only asynchronous events to a dead-letter queue. Here these events are requests of "
    "CloudFormation, which itself reports requests without an answer. Nobody could use requests from a queue later.",
}
"""The rules of NIST 800-53 R5 that the functions do not meet, and the reasons."""


OUTSIDE_VPC = {
    "LambdaInsideVPC": "The store was created without vpc=, so its functions are not in a VPC. They call only APIs of "
    "AWS, and IAM restricts these calls."
}
"""The same for functions in Lambda's own network."""

CHECKOV_IDS = {
    "LambdaConcurrency": "CKV_AWS_115",
    "LambdaDLQ": "CKV_AWS_116",
    "LambdaInsideVPC": "CKV_AWS_117",
}
"""The corresponding checks of Checkov."""

PLAIN_VARIABLES = (
    "The variables are names and ARNs that the template has too, and Lambda encrypts them with a key of AWS. With "
    "another key, a function that may not use it does not start."
)


class HandlerFunctions(NamedTuple):
    """Makes the store's functions.

    Attributes:
        code: the code of all functions.
        log_group: the log group of the functions.
        network: the network of the functions in a VPC; None for Lambda's own network.
    """

    code: lambda_.Code
    log_group: logs.ILogGroup
    network: Network | None

    def function(
        self,
        scope: Construct,
        id: str,
        handler: str,
        environment: Mapping[str, str],
        timeout: Duration,
        role: iam.Role,
    ) -> lambda_.Function:
        """Create a function that runs `handler`, created after the permissions of its role."""
        made = lambda_.Function(
            scope,
            id,
            runtime=lambda_.Runtime.PYTHON_3_14,
            code=self.code,
            handler=handler,
            timeout=timeout,
            memory_size=512,
            role=role,  # a function grants itself nothing here, and what a user grants it shall count
            environment=environment,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            description=f"cdk-triton: {handler} of {path_of(role.node.scope or scope)}"[:256],
        )
        unavoidable = UNAVOIDABLE if self.network else UNAVOIDABLE | OUTSIDE_VPC
        acknowledge_nist(made, unavoidable)
        same = {CHECKOV_IDS[rule]: reason for rule, reason in unavoidable.items()}
        skip_checkov(made.node.default_child, same | {"CKV_AWS_173": PLAIN_VARIABLES})
        if self.network is not None:
            _put_into_vpc(made, role, self.network)
        return made


def handler_code() -> lambda_.Code:
    """The code of the handlers.

    Raises:
        ConfigurationError: the checkout has no symbolic links, so the code is incomplete.
    """
    directory = shipped_directory("lambda")
    if not (directory / "protocol" / "__init__.py").is_file():
        raise ConfigurationError(
            f"{directory / 'protocol'} is not a link, so the handlers would lack a package: check the library out "
            "again with `git config core.symlinks true`, or install its wheel"
        )
    return lambda_.Code.from_asset(
        str(directory),
        exclude=["__pycache__", "*.pyc", "README.md"],
        follow_symlinks=SymlinkFollowMode.ALWAYS,  # in a checkout, `protocol` is a link
    )


def provider(scope: Construct, functions: HandlerFunctions, is_complete: lambda_.IFunction) -> str:
    """Create the function that CloudFormation calls, and return its ARN.

    Args:
        scope: the store.
        functions: makes the functions.
        is_complete: the function that does the work.
    """
    role = lambda_role(scope, "ProvideRole")
    machine = _waiter(scope, is_complete)
    starting = Statement(actions=["states:StartExecution"], resources=[machine])
    allow(role, log_writing(functions.log_group), starting)
    made = functions.function(scope, "Provide", "artifacts.provide", {"WAITER": machine}, _START_TIMEOUT, role)
    return made.function_arn


def _waiter(scope: Construct, is_complete: lambda_.IFunction) -> str:
    """Create the state machine that polls `is_complete`, and return its ARN.

    In the CDK's framework, one function calls another. Both count against the concurrent executions of the account,
    which are 10 in a new one, and a call that Lambda throttles becomes the failure of the resource (`outbound.ts`,
    `cfn-response.ts` in aws-cdk). Step Functions calls one function, and repeats a call that was throttled.
    """
    role = iam.Role(scope, "WaiterRole", assumed_by=states_of_the_account(scope))
    allow(role, Statement(actions=["lambda:InvokeFunction"], resources=[is_complete.function_arn]))
    machine = sfn.CfnStateMachine(
        scope,
        "Waiter",
        role_arn=role.role_arn,
        definition_string=stack_of(scope).to_json_string(_definition(is_complete.function_arn)),
    )
    machine.node.add_dependency(role)
    reasons = {
        "SF1": "The waiter only repeats the call of is_complete, and the functions log every poll. A log of the waiter "
        "would need a role with logs:PutResourcePolicy on every resource.",
        "SF2": "Tracing is for requests of users. The waiter only repeats the call of one handler of a deployment.",
    }
    acknowledge(machine, reasons)
    return machine.ref


def _definition(function_arn: str) -> dict[str, Any]:
    again = {"ErrorEquals": list(NOT_RUN), "IntervalSeconds": 1, "BackoffRate": 2, "MaxDelaySeconds": 10}
    task = {
        "Type": "Task",
        "Resource": function_arn,
        # Repeated during the whole life of the waiter, so an account without a free execution only slows a deployment
        # down.
        "Retry": [
            {**again, "MaxAttempts": WAITER_SECONDS, "JitterStrategy": "FULL"},
            {"ErrorEquals": ["ArtifactError"], "MaxAttempts": 0},  # the answer of the handler
            # An error that Lambda did not have when this was written, or the end of the handler's process.
            {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "BackoffRate": 2, "MaxAttempts": 5},
        ],
    }
    return {
        "StartAt": "Poll",
        "TimeoutSeconds": WAITER_SECONDS,
        "States": {
            "Poll": {
                **task,
                "ResultPath": "$.Polled",
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Answer"}],
                "Next": "IsComplete",
            },
            "IsComplete": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.Polled.IsComplete", "BooleanEquals": True, "Next": "Answer"},
                ],
                "Default": "Wait",
            },
            "Wait": {"Type": "Wait", "SecondsPath": "$.Polled.Seconds", "Next": "Poll"},
            "Answer": {**task, "End": True},
        },
    }


def _put_into_vpc(function: lambda_.Function, role: iam.Role, network: Network) -> None:
    """Connect a function to a VPC. The CDK's own method would need another copy of subnets and security groups."""
    allow_function_network(role)
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)  # as CDK makes functions
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(network.subnets), security_group_ids=list(network.security_groups)
    )
    resource.node.add_dependency(role)  # Lambda looks for the permissions when it makes the function
    await_network(resource, network, role.node.scope or function, "functions")


def lambda_role(
    scope: Construct,
    id: str,
) -> iam.Role:
    """A role for a function, without permissions."""
    return iam.Role(scope, id, assumed_by=_lambda_service())


def log_writing(log_group: logs.ILogGroup) -> Statement:
    """The statement that lets a function write its log."""
    return Statement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn])


def endpoint_states(scope: Construct) -> tuple[list[Statement], dict[str, str]]:
    """The handler's permissions to wait for an endpoint, and the reason for each ARN with a wildcard.

    The handler reads only the status of the requesting stack's endpoint, and responds when the endpoint is no longer
    busy. It reads the status of that stack too, which alone distinguishes a rollback from another update: a rollback is
    neither rehearsed nor compared with what is published for another platform.
    """
    stack = stack_of(scope)
    endpoints = stack.format_arn(service="sagemaker", resource="endpoint", resource_name="*")
    stacks = stack.format_arn(service="cloudformation", resource="stack", resource_name="*")
    reason = (
        "Endpoints and their stacks are not known yet. A policy for each endpoint would exceed the limits of the role: "
        "IAM allows 10,240 characters of inline policies and ten managed policies."
    )
    statements = [
        Statement(actions=["sagemaker:DescribeEndpoint"], resources=[endpoints]),
        Statement(
            actions=["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"], resources=[stacks]
        ),
    ]
    return statements, dict.fromkeys((endpoints, stacks), reason)


@cache  # creating one takes a jsii call, and a principal is a value
def _lambda_service() -> iam.IPrincipal:
    return iam.ServicePrincipal("lambda.amazonaws.com")
