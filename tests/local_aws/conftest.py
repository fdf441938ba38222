"""A local AWS with a double in place of Triton, shared by the tests of this folder."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import (
    Component,
    Endpoint,
    Invocation,
    Response,
    Shift,
    StreamedResponse,
    all_at_once,
)

if TYPE_CHECKING:
    from golden_messages import Messages

Rejected = Callable[[str], AbstractContextManager[pytest.ExceptionInfo[ClientError]]]
"""What the fixture `rejected` gives."""


@pytest.fixture(autouse=True)
def _quick_scaling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances come and go at once; `tests/end_to_end/test_scaled_endpoint.py` takes the time that they take."""
    monkeypatch.setattr("cdk_triton_local.endpoints.instance_changes.SECONDS", 0.0)


class EndpointDouble:
    """Stands in for Triton: remembers endpoints, rejects those with a container variable REJECT, echoes requests."""

    def __init__(self) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        self.components: dict[str, tuple[Component, int]] = {}

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        for variant in endpoint.variants[:1]:
            if rejection := variant.container.environment.get("REJECT"):
                raise LocalError(rejection)
        if endpoint.name in self.endpoints:
            shift(lambda share: None)
        self.endpoints[endpoint.name] = endpoint

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        variants = self.endpoints[name].variants
        self.endpoints[name] = replace(
            self.endpoints[name],
            variants=tuple(replace(each, weight=weights.get(each.name, each.weight)) for each in variants),
        )

    def place(self, component: Component, copies: int) -> None:
        if rejection := component.container.environment.get("REJECT"):
            raise LocalError(rejection)
        self.components[component.name] = component, copies

    def withdraw(self, name: str) -> None:
        self.components.pop(name, None)

    def remove(self, name: str) -> None:
        self.endpoints.pop(name, None)

    def invoke(self, invocation: Invocation) -> Response:
        target = invocation.headers.get("x-amzn-sagemaker-target-model", "")
        return Response(200, {"Content-Type": "text/plain", "X-Target": target}, invocation.body)

    def stream(self, invocation: Invocation) -> Response | StreamedResponse:
        """In parts of one byte each."""
        parts = (invocation.body[at : at + 1] for at in range(len(invocation.body)))
        return StreamedResponse({"Content-Type": invocation.headers["accept"]}, parts, lambda: None)

    def close(self) -> None:
        self.endpoints.clear()
        self.components.clear()


class Deployer:
    """Deploys templates as a person with boto3 would, and waits."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.client = aws.client("cloudformation")
        self._names = iter(f"stack{number}" for number in range(10_000))

    def new_name(self) -> str:
        return next(self._names)

    def deploy(self, template: Mapping[str, Any], name: str, **more: Any) -> str:
        """Create or update the stack `name`; returns its last status."""
        exists = any(stack["StackName"] == name for stack in self.client.describe_stacks()["Stacks"])
        operation = self.client.update_stack if exists else self.client.create_stack
        operation(StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"], **more)
        return self.wait(name)

    def delete(self, name: str) -> str:
        identifier = self.describe(name)["StackId"]
        self.client.delete_stack(StackName=name)
        return self.wait(identifier)

    def wait(self, name: str) -> str:
        while True:
            status: str = self.describe(name)["StackStatus"]
            if not status.endswith("_IN_PROGRESS"):
                return status
            threading.Event().wait(0.02)

    def describe(self, name: str) -> dict[str, Any]:
        stack: dict[str, Any] = self.client.describe_stacks(StackName=name)["Stacks"][0]
        return stack

    def raw_events(self, name: str, since: int = 0) -> list[dict[str, Any]]:
        return list(reversed(self.client.describe_stack_events(StackName=name)["StackEvents"]))[since:]

    def events(self, name: str, since: int = 0) -> list[str]:
        """`<logical id> <status>` of each event, oldest first; the stack itself is `-`."""
        return [
            f"{'-' if each['ResourceType'] == 'AWS::CloudFormation::Stack' else each['LogicalResourceId']} "
            f"{each['ResourceStatus']}"
            for each in self.raw_events(name, since)
        ]

    def count(self, name: str) -> int:
        return len(self.raw_events(name))


Signed = Callable[..., dict[str, str]]
"""What the fixture `signed` gives."""


@pytest.fixture(scope="session")
def signed() -> Signed:
    """Makes the headers of a signed request, for clients that are not botocore's."""

    def sign(
        aws: LocalAws,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        service: str = "sagemaker",
        secret: str | None = None,
    ) -> dict[str, str]:
        variables = aws.environment()
        secret = variables["AWS_SECRET_ACCESS_KEY"] if secret is None else secret
        request = AWSRequest(method, f"{aws.url}{path}", dict(headers), body)
        SigV4Auth(Credentials(variables["AWS_ACCESS_KEY_ID"], secret), service, aws.region).add_auth(request)
        return dict(request.headers)

    return sign


@pytest.fixture(scope="session")
def endpoint_double() -> EndpointDouble:
    return EndpointDouble()


@pytest.fixture(scope="module")
def local_aws(tmp_path_factory: pytest.TempPathFactory, endpoint_double: EndpointDouble) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: endpoint_double) as aws:
        yield aws


@pytest.fixture(scope="module")
def deployer(local_aws: LocalAws) -> Deployer:
    return Deployer(local_aws)


@pytest.fixture
def rejected(messages: Messages) -> Rejected:
    """Expects that the local AWS rejects a request with a code, and records its sentence.

    Where the local AWS says what AWS says, tests compare the sentence itself: they use `pytest.raises`.
    """

    @contextmanager
    def expect(code: str) -> Iterator[pytest.ExceptionInfo[ClientError]]:
        with pytest.raises(ClientError) as caught:
            yield caught
        error = caught.value.response["Error"]
        assert error["Code"] == code
        messages.record(code, error["Message"])

    return expect
