"""Records what the calls of a local AWS need, with the policies that decide at that moment."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.permissions.account import Account
from tests.permissions.judging import Decision, Policies, Request, document
from tests.permissions.requests import deployment_requests, passed_roles, requests_of

from cdk_triton_local.process import CALLER, CLOUDFORMATION, ITSELF

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdk_triton_local import LocalAws
    from cdk_triton_local.process import Call

__all__ = ["OPERATOR", "Recording", "recorder"]

ROOT: Final = Path(__file__).parents[2]

OPERATOR: Final = "operator"
"""Who prepares an account and looks into it, without the faults of users."""

BOOKKEEPING: Final = {
    ("cloudformation", "DescribeStacks"),  # `Account.stack`
    ("cloudwatch", "DescribeAlarms"),  # CloudWatch evaluates its own alarms
    ("cloudwatch", "PutMetricData"),  # the metrics of SageMaker in AWS's own namespace
    ("cloudwatch", "SetAlarmState"),
    ("events", "ListRules"),  # EventBridge looks for the rules of an event
    ("events", "ListTargetsByRule"),
    ("lambda", "GetFunctionConfiguration"),  # how a custom resource runs here
    # The log of a function, whose LoggingConfig moto does not keep, so that AWS may have another log group.
    ("logs", "CreateLogGroup"),
    ("logs", "CreateLogStream"),
    ("logs", "PutLogEvents"),
    ("s3", "ListBuckets"),  # which names of buckets are taken
    ("sagemaker", "DescribeEndpointConfig"),
    ("sagemaker", "DescribeModel"),
    ("stepfunctions", "DescribeStateMachine"),
}
"""What the local AWS looks up in its own state. Another call without a principal would be on somebody's behalf."""

DEPLOYMENT: Final = document(json.loads((ROOT / "docs" / "assets" / "deployment_policy.json").read_text()))

APPS: Final = document(json.loads(Path(__file__).with_name("apps_policy.json").read_text()))
"""For the resources that the apps of the tests make beside those of the library."""

Key = tuple[str, str, str | None, tuple[tuple[str, str | tuple[str, ...]], ...], Policies]


class Recording:
    """Collects the different decisions of all calls.

    Attributes:
        decisions: the decisions about the calls of roles and of services.
        faults: calls that cannot be judged, each in a sentence.
    """

    def __init__(self) -> None:
        self.decisions: dict[Key, Decision] = {}
        self.faults: dict[str, None] = {}
        self._lock = threading.Lock()

    def add(self, call: Call, account: Account) -> None:
        """Record a call before it is answered."""
        try:
            self._add(call, account)
        except Exception as error:  # a test fails at its end, and not the request
            self._fault(f"{call} cannot be judged: {error!r}")

    def _add(self, call: Call, account: Account) -> None:
        name = f"{call.service}:{call.operation}"
        if call.principal == ITSELF:
            if (call.service, call.operation) not in BOOKKEEPING:
                self._fault(f"{name} has no principal: give the client the principal on whose behalf it is called")
        elif call.principal == CLOUDFORMATION:
            self._of_deployment(call, name, account)
        elif call.principal not in (CALLER, OPERATOR):
            self._of_role(call, name, account)

    def _of_deployment(self, call: Call, name: str, account: Account) -> None:
        """What CloudFormation's role needs; the roles that it passes, and what the services then do with them."""
        role = f"arn:aws:iam::{account.id}:role/cdk-hnb659fds-cfn-exec-role"
        for request in deployment_requests(call, account):
            policies = Policies((APPS, DEPLOYMENT), resource=_resource_policy(request, account))
            self._decide(role, request, policies, name)
        for passed, service in passed_roles(call):
            context = {"iam:PassedToService": service}
            self._decide(role, Request("iam:PassRole", passed, context), Policies((DEPLOYMENT,)), name)
            source = {"aws:SourceAccount": account.id, "aws:SourceArn": _source(call, service, account)}
            trust = account.trust(passed)
            if trust is not None:
                self._decide(service, Request("sts:AssumeRole", passed, source), Policies(resource=trust), name)

    def _of_role(self, call: Call, name: str, account: Account) -> None:
        is_service = call.principal.endswith(".amazonaws.com")
        policies = Policies() if is_service else account.of_role(call.principal)
        if policies is None:
            self._fault(f"{name} is called by {call.principal}, which does not exist")
            return
        try:
            wanted = list(requests_of(call, account))
        except LookupError as error:
            self._fault(f"{name} of {call.principal} has no row in tests/permissions/requests.py: {error!r}")
            return
        for request in wanted:
            if is_service:
                request = replace(request, context={**request.context, "aws:SourceAccount": account.id})
            of_resource = _resource_policy(request, account)
            self._decide(call.principal, request, Policies(policies.identity, policies.boundary, of_resource), name)
        for role, service in passed_roles(call):
            passed = Request("iam:PassRole", role, {"iam:PassedToService": service})
            self._decide(call.principal, passed, policies, name)

    def _decide(self, principal: str, request: Request, policies: Policies, name: str) -> None:
        key = (principal, request.action, request.resource, tuple(sorted(request.context.items())), policies)
        with self._lock:
            self.decisions.setdefault(key, Decision(principal, request, policies, name))

    def _fault(self, sentence: str) -> None:
        with self._lock:
            self.faults[sentence] = None


def recorder(recordings: dict[str, Recording]) -> Callable[[LocalAws, Call], None]:
    """A `LocalAws.on_call` that records the calls of each account."""

    def record(aws: LocalAws, call: Call) -> None:
        recordings.setdefault(aws.account, Recording()).add(call, Account(aws))

    return record


def _resource_policy(request: Request, account: Account) -> str | None:
    arn = request.resource or ""
    if arn.startswith("arn:aws:s3:::"):
        return account.bucket_policy(arn.removeprefix("arn:aws:s3:::").partition("/")[0])
    if ":kms:" in arn:
        return account.key_policy(arn)
    if ":sns:" in arn:
        return account.topic(arn)[0]
    return None


def _source(call: Call, service: str, account: Account) -> str:
    """What a service sends as `aws:SourceArn` when it assumes a role; see `hosting/access/trust.py` for the sources."""
    name = next(iter(value for key, value in call.parameters.items() if key.lower().endswith("name")), "any")
    kind = {"CreateModel": "model/", "CreateEndpointConfig": "endpoint-config/"}.get(call.operation, "")
    return f"arn:aws:{service.partition('.')[0]}:{account.region}:{account.id}:{kind}{name}"
