"""The waits for custom resources end in time: a double of the services has the functions, which never answer."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.intrinsics import Environment
from cdk_triton_local.cloudformation.resource_types.base import Context
from cdk_triton_local.cloudformation.resource_types.custom import CustomResource
from cdk_triton_local.lambdas import Executions
from cdk_triton_local.skipped_time import SkippedTime


class Services:
    """What a custom resource uses: a function that does not answer, on a local AWS that skips pauses."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.stopping = threading.Event()
        self.time = SkippedTime(self.stopping)
        self.time.skips = True
        self.sleep = self.time.sleep
        self.executions = Executions()
        self.calls = 0
        self._configuration = configuration
        self.url = "https://mailbox.invalid"

    def create(self) -> None:
        place = Environment("us-east-1", "123456789012", "stack", "arn:stack")
        context = Context(place, "Thing", "Custom::Thing", cast(Any, self))
        token = "arn:aws:lambda:us-east-1:123456789012:function:f"
        CustomResource().create(context, {"ServiceToken": token, "ServiceTimeout": 1})

    def client(self, service: str, principal: str = "") -> Any:
        return self

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        return self._configuration

    def describe_state_machine(self, **_: str) -> dict[str, Any]:
        retry = {"IntervalSeconds": 5, "MaxAttempts": 100}
        return {"definition": json.dumps({"States": {"framework-isComplete-task": {"Retry": [retry]}}})}

    def deliveries(self) -> int:
        return 1

    def invoke_function(self, function: str, event: Any, principal: str = "") -> dict[str, Any]:
        self.calls += 1
        self.time.skip_to(self.time.now + 100)
        return {"IsComplete": False}

    def open_mailbox(self) -> Services:
        return self

    def wait(self, seconds: float) -> None:
        self.stopping.set()

    def close(self) -> None:
        pass


def test_a_wait_for_an_answer_ends_when_the_local_aws_is_stopped() -> None:
    with pytest.raises(LocalError, match="the local AWS is being stopped"):
        Services({"Handler": "index.handler"}).create()


def test_skipped_time_counts_for_the_timeout_of_the_framework() -> None:
    variables = ("USER_ON_EVENT_FUNCTION_ARN", "USER_IS_COMPLETE_FUNCTION_ARN", "WAITER_STATE_MACHINE_ARN")
    configuration = {
        "Handler": "framework.onEvent",
        "Role": "arn:aws:iam::123456789012:role/handlers",
        "Environment": {"Variables": dict.fromkeys(variables, "arn")},
    }
    services = Services(configuration)
    with pytest.raises(LocalError, match="Operation timed out"):
        services.create()
    assert services.calls == 2  # onEvent, and isComplete once
