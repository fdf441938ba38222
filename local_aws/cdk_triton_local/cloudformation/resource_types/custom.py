"""Custom resources: the request and response protocol, and the CDK's Provider framework on top of it.

Rules come from "Custom resource reference" in the CloudFormation user guide (request and response objects, 4096 bytes,
physical ids) and, for the framework, from the runtime that `aws_cdk.custom_resources.Provider` deploys
(`framework.js`): `onEvent` is called once, `isComplete` is polled, an exception is a FAILED answer with its message as
the reason.
"""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cdk_triton.errors import LocalError, TemplateError
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN
from cdk_triton_local.cloudformation.resource_types._auto_delete import TYPE_NAME, answer
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    Mailbox,
    NotAttemptedError,
    PhysicalResource,
    Properties,
    ResourceFailedError,
    ResourceType,
    register,
)
from cdk_triton_local.cloudformation.resource_types.lambda_functions import WAITER_TASK
from cdk_triton_local.lambdas import NotRunError, ThrottledError
from cdk_triton_local.process import ITSELF

MAX_RESPONSE_BYTES = 4096
"""Largest response body in bytes (custom resource response objects: "can't exceed 4096 bytes")."""

MAX_PHYSICAL_ID_BYTES = 1024
"""Longest physical id (custom resource response objects: "up to 1 KB in size")."""

MAX_SERVICE_TIMEOUT = 3600
"""Longest wait for an answer in seconds, and the default (AWS::CloudFormation::CustomResource, `ServiceTimeout`)."""

CREATE_FAILED = "AWSCDK::CustomResourceProviderFramework::CREATE_FAILED"
"""The framework's physical id of a creation that failed before it had one; the later Delete of it is not passed on."""

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.05, 1.0
"""How long the local poll of `isComplete` waits at first and at most; never longer than the waiter's interval."""

FRAMEWORK_ATTEMPTS = 6
"""How often the framework invokes a function that Lambda throttles: three attempts of the SDK, twice
(`outbound.ts` in aws-cdk)."""

FRAMEWORK_ACTIVE_SECONDS = 300
"""How long the framework waits for a function that is not active (`outbound.ts`, `waitUntilFunctionActiveV2`)."""

FRAMEWORK_PAUSE_SECONDS = 0.5
"""Between these, about: the SDK waits half a second after the first throttled attempt ("Retry behavior")."""

FRAMEWORK_START_SECONDS = 0.1
"""Between the start of the framework's own function and the invocation that it sends: Node.js takes longer to start.
Functions that start together therefore occupy all executions before the first of them invokes another function."""

RequestType = Literal["Create", "Update", "Delete"]


@register
class CustomResource(ResourceType):
    """AWS::CloudFormation::CustomResource and every Custom::* type."""

    type_name = "AWS::CloudFormation::CustomResource"
    note = (
        "Behind a CDK Provider, `onEvent` and `isComplete` run here with the framework's protocol, but the local AWS "
        "polls faster. `Custom::S3AutoDeleteObjects` empties the bucket here, without the CDK's Node.js function. "
        "Any other Python function gets the request with a ResponseURL. SNS topics as service tokens are not modelled."
    )
    modelled = frozenset({"ServiceTimeout", "ServiceToken"})
    attributes = frozenset({"*"})

    def coerce(self, properties: Properties) -> dict[str, Any]:
        if "ServiceToken" not in properties:
            raise TemplateError("a custom resource lacks the required property 'ServiceToken'")
        token = properties["ServiceToken"]
        if token is not UNKNOWN and not re.match(r"arn:[^:]+:lambda:", str(token)):
            raise TemplateError(
                f"the service token {token!r} is not the ARN of a Lambda function, the only kind that is modelled"
            )
        timeout = properties.get("ServiceTimeout", MAX_SERVICE_TIMEOUT)
        if timeout is not UNKNOWN and not 1 <= int(timeout) <= MAX_SERVICE_TIMEOUT:
            raise TemplateError(
                f"ServiceTimeout is {timeout}, but CloudFormation accepts 1 to {MAX_SERVICE_TIMEOUT} seconds"
            )
        return dict(properties)

    def check_attribute(self, attribute: str) -> None:
        """Accept every attribute: only the response shows which ones its Data has."""

    def replacing(self, changed: Any) -> frozenset[str]:
        return frozenset()  # the provider decides, by answering with another physical id

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        answer = _Exchange(context, "Create", properties).run()
        if answer.failed:
            raise ResourceFailedError(answer.reason, answer.physical)
        return answer.physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        if properties["ServiceToken"] != previous["ServiceToken"]:
            raise NotAttemptedError("Modifying service token is not allowed.")
        answer = _Exchange(context, "Update", properties, physical, previous).run()
        if not answer.failed:
            return answer.physical
        if answer.physical.id != physical.id:
            raise ResourceFailedError(answer.reason, answer.physical)
        raise LocalError(answer.reason)

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        answer = _Exchange(context, "Delete", properties, physical).run()
        if answer.failed:
            raise LocalError(answer.reason)


@dataclass(frozen=True)
class _Answer:
    physical: PhysicalResource
    failed: bool
    reason: str


class _Exchange:
    def __init__(
        self,
        context: Context,
        kind: RequestType,
        properties: Properties,
        physical: PhysicalResource | None = None,
        previous: Properties | None = None,
    ) -> None:
        self._context = context
        self._kind = kind
        self._function = str(properties["ServiceToken"])
        self._timeout = float(properties.get("ServiceTimeout", MAX_SERVICE_TIMEOUT))
        self._request = {
            "RequestType": kind,
            "ServiceToken": self._function,
            "StackId": context.environment.stack_id,
            "RequestId": str(uuid.uuid4()),
            "LogicalResourceId": context.logical_id,
            "ResourceType": context.type_name,
            "ResourceProperties": as_text(properties),
        }
        if physical is not None:
            self._request["PhysicalResourceId"] = physical.id
        if previous is not None:
            self._request["OldResourceProperties"] = as_text(previous)

    def run(self) -> _Answer:
        try:
            functions = self._context.services.client("lambda", ITSELF)
            configuration = functions.get_function_configuration(FunctionName=self._function)
        except Exception as error:
            raise LocalError(f"Invalid service token: {self._function}: {error}") from error
        if str(configuration.get("Handler", "")).startswith("framework."):
            return self._as_answer(_ProviderFramework(self._context, self._request, configuration, self._timeout).run())
        if self._context.type_name == TYPE_NAME and str(configuration.get("Runtime")).startswith("nodejs"):
            return self._as_answer(answer(self._context, self._request, configuration["Role"]))
        return self._as_answer(self._plain())

    def _plain(self) -> Mapping[str, Any]:
        """Return the first response: with it, CloudFormation "proceeds with the stack operation" (`crpg-ref`)."""
        mailbox = self._context.services.open_mailbox()
        try:
            failure = self._deliver({**self._request, "ResponseURL": mailbox.url})
            # On AWS the stack would wait for the service timeout also if no delivery can lead to a response.
            answer = self._first(mailbox) if failure is None else mailbox.wait(0)
        finally:
            mailbox.close()
        if answer is None:
            cause = "" if failure is None else f" {failure}"
            raise LocalError(
                "CloudFormation did not receive a response from your Custom Resource. Please check your logs for "
                f"requestId [{self._request['RequestId']}].{cause}"
            )
        return answer

    def _first(self, mailbox: Mailbox) -> Mapping[str, Any] | None:
        """The first response; None if none came within the service timeout."""
        time = self._context.services.time
        until = time.now + self._timeout
        while (left := until - time.now) > 0:
            if (answer := mailbox.wait(min(left, LONGEST_POLL_SECONDS))) is not None:
                return answer
            time.sleep(0)  # fails when the local AWS is being stopped
        return mailbox.wait(0)

    def _deliver(self, request: Mapping[str, Any]) -> LocalError | None:
        """Return the failure if the function fails at each delivery.

        "CloudFormation invokes your Lambda function asynchronously", so it does not see whether the function fails, and
        Lambda keeps what does not run yet.
        """
        services = self._context.services
        failures = []
        deliveries = services.deliveries()
        for _ in range(deliveries):
            try:
                _retry_until_run(self._context, lambda: services.invoke_function(self._function, request))
            except LocalError as error:
                failures.append(error)
        return failures[-1] if len(failures) == deliveries else None

    def _as_answer(self, response: Mapping[str, Any]) -> _Answer:
        """A response that breaks the protocol is a failure, as in CloudFormation."""
        identifier = str(response.get("PhysicalResourceId") or self._request.get("PhysicalResourceId") or "")
        data = response.get("Data") or {}
        fault = None
        if not identifier:
            fault = "Invalid PhysicalResourceId"
            identifier = self._context.generated_name(MAX_PHYSICAL_ID_BYTES)
        elif len(identifier.encode()) > MAX_PHYSICAL_ID_BYTES:
            fault = f"PhysicalResourceId is longer than {MAX_PHYSICAL_ID_BYTES} bytes"
        elif (size := _size(response)) > MAX_RESPONSE_BYTES:
            fault = f"Response object is too long. ({size:,} bytes; CloudFormation accepts {MAX_RESPONSE_BYTES:,})"
        elif not isinstance(data, dict):
            fault = "Data is not an object"
        elif response.get("Status") != "SUCCESS":
            fault = (
                f"Received response status [{response.get('Status')}] from custom resource. Message returned: "
                f"{response.get('Reason')} (RequestId: {self._request['RequestId']})"
            )
        return _Answer(PhysicalResource(identifier, data if fault is None else {}), fault is not None, fault or "")


class _ProviderFramework:
    def __init__(
        self, context: Context, request: dict[str, Any], configuration: Mapping[str, Any], timeout: float
    ) -> None:
        self._context = context
        self._request = request
        self._role = str(configuration["Role"])
        self._variables: Mapping[str, str] = configuration["Environment"]["Variables"]
        self._timeout = timeout

    def run(self) -> Mapping[str, Any]:
        event = self._request
        if event["RequestType"] == "Delete" and event["PhysicalResourceId"] == CREATE_FAILED:
            return self._response(event, "SUCCESS")
        try:
            event = self._on_event()
            if "USER_IS_COMPLETE_FUNCTION_ARN" in self._variables:
                event = self._until_complete(event)
        except _TimedOutError as failure:
            return self._response(failure.event, "FAILED", str(failure))
        except _FailedError as failure:
            return self._response(failure.event, "FAILED", f"Error: {failure}")
        return self._response(event, "SUCCESS")

    def _on_event(self) -> dict[str, Any]:
        request = self._request
        result = self._invoke_from_framework("USER_ON_EVENT_FUNCTION_ARN", request) or {}
        if not isinstance(result, dict):
            raise _FailedError(f"onEvent must return an object, not {result!r}", request)
        before = request.get("PhysicalResourceId")
        identifier = result.get("PhysicalResourceId") or before or request["RequestId"]
        if request["RequestType"] == "Delete" and identifier != before:
            raise _FailedError(
                f'DELETE: cannot change the physical resource ID from "{before}" to "{identifier}" during deletion',
                request,
            )
        return {**request, **result, "PhysicalResourceId": identifier}

    def _until_complete(self, event: dict[str, Any]) -> dict[str, Any]:
        interval, total = self._waiter()
        deadline = self._context.services.time.now + min(total, self._timeout)
        for pause in _pauses(interval):
            result = self._invoke_from_framework("USER_IS_COMPLETE_FUNCTION_ARN", event)
            if not isinstance(result, dict):
                raise _FailedError(f"isComplete must return an object, not {result!r}", event)
            if result.get("IsComplete"):
                return {**event, **result, "Data": {**(event.get("Data") or {}), **(result.get("Data") or {})}}
            if result.get("Data"):
                raise _FailedError('"Data" is not allowed if "IsComplete" is "False"', event)
            if self._context.services.time.now + pause > deadline:
                raise _TimedOutError("Operation timed out", event)
            self._context.services.sleep(pause)
        raise AssertionError("pauses never end")

    def _waiter(self) -> tuple[float, float]:
        """The poll interval and the total timeout, both in seconds."""
        machine = self._context.services.client("stepfunctions", ITSELF).describe_state_machine(
            stateMachineArn=self._variables["WAITER_STATE_MACHINE_ARN"]
        )
        (retry,) = json.loads(machine["definition"])["States"][WAITER_TASK]["Retry"]
        interval, rate, total = float(retry["IntervalSeconds"]), float(retry.get("BackoffRate", 1)), 0.0
        for attempt in range(int(retry["MaxAttempts"])):
            total += interval * rate**attempt
        return interval, total

    def _invoke_from_framework(self, variable: str, event: dict[str, Any]) -> Any:
        """Invoke a user's function while the framework's own function occupies an execution, too."""

        def own() -> Any:
            with self._context.services.executions.one():
                self._context.services.sleep(FRAMEWORK_START_SECONDS)
                return self._invoke_with_retries(variable, event)

        return _retry_until_run(self._context, own)

    def _invoke_with_retries(self, variable: str, event: dict[str, Any]) -> Any:
        """Raises _FailedError also if the function stays throttled or inactive, as the framework does."""
        throttled, deadline = 0, self._context.services.time.now + FRAMEWORK_ACTIVE_SECONDS
        while True:
            try:
                return self._invoke_once(variable, event)
            except NotRunError as error:
                throttled += isinstance(error, ThrottledError)
                if throttled == FRAMEWORK_ATTEMPTS or self._context.services.time.now > deadline:
                    raise _FailedError(str(error), event) from error
                self._context.services.sleep(FRAMEWORK_PAUSE_SECONDS)

    def _invoke_once(self, variable: str, event: dict[str, Any]) -> Any:
        function = self._variables[variable]
        try:
            # The framework passes the response URL on, and a function that used it would answer twice: here it leads
            # nowhere.
            request = {**event, "ResponseURL": "https://answered-by-the-framework.invalid/"}
            return self._context.services.invoke_function(function, request, self._role)
        except NotRunError:
            raise
        except LocalError as error:
            raise _FailedError(f"{error}\n\nLogs: /aws/lambda/{function.rsplit(':', 1)[-1]}\n", event) from error

    @staticmethod
    def _response(event: Mapping[str, Any], status: str, reason: str | None = None) -> Mapping[str, Any]:
        identifier = event.get("PhysicalResourceId")
        if not identifier and event["RequestType"] == "Create":
            identifier = CREATE_FAILED
        return {
            "Status": status,
            "Reason": reason or status,
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "PhysicalResourceId": identifier,
            "LogicalResourceId": event["LogicalResourceId"],
            **{name: event[name] for name in ("NoEcho", "Data") if name in event},
        }


class _FailedError(Exception):
    def __init__(self, message: str, event: dict[str, Any]) -> None:
        super().__init__(message)
        self.event = event


class _TimedOutError(_FailedError):
    pass


def _retry_until_run(context: Context, invocation: Callable[[], Any]) -> Any:
    for pause in _pauses(LONGEST_POLL_SECONDS):
        try:
            return invocation()
        except NotRunError:
            context.services.sleep(pause)
    raise AssertionError("pauses never end")


def _pauses(interval: float) -> Iterator[float]:
    pause = FIRST_POLL_SECONDS
    while True:
        yield min(pause, interval)
        pause = min(pause * 1.5, LONGEST_POLL_SECONDS)


def _size(response: Mapping[str, Any]) -> int:
    return len(json.dumps(response, separators=(",", ":"), ensure_ascii=False).encode())


def as_text(value: Any) -> Any:
    """Properties as CloudFormation sends them: every scalar is text."""
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
