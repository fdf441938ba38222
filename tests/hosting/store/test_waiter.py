"""The waiter of the store's provider, run by moto's interpreter with a double of the handler."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import boto3
import pytest
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils

from artifacts.provider import has_outcome
from cdk_triton import TritonArtifactStore
from cdk_triton.protocol.invocation import CALL_AGAIN
from cdk_triton_local.moto_state import machines

if TYPE_CHECKING:
    from tests.hosting.conftest import World

HANDLER = "arn:aws:lambda:us-east-1:123456789012:function:handler"

NEED_A_CHANGE = {
    *("DurableExecutionAlreadyStartedException", "InvalidParameterValueException", "InvalidRequestContentException"),
    *("ModeNotSupportedException", "NoPublishedVersionException", "RecursiveInvocationException"),
    *("RequestTooLargeException", "ResourceNotFoundException", "SerializedRequestEntityTooLargeException"),
    *("ServiceQuotaExceededException", "UnsupportedMediaTypeException"),
    *("CodeArtifactUserFailedException", "InvalidRuntimeException", "InvalidZipFileException"),
    *("RuntimeAliasDeletedException", "RuntimeVersionDeletedException"),
    *("EC2AccessDeniedException", "ENILimitReachedException", "SubnetIPAddressLimitReachedException"),
    *("InvalidSecurityGroupIDException", "InvalidSubnetIDException"),
    *("KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException"),
}
"""The errors of `Invoke` that stay until somebody changes the request, the function, its network or its keys."""

OF_OTHER_FUNCTIONS = ("EFS", "S3Files", "SnapStart")
"""The store's functions use none of these."""


def test_each_error_of_invoke_is_known() -> None:
    """A new one in botocore's model must be sorted into the errors that pass, or those that do not."""
    model = boto3.client("lambda", region_name="us-east-1").meta.service_model.operation_model("Invoke")
    errors = {each.name for each in model.error_shapes if not each.name.startswith(OF_OTHER_FUNCTIONS)}
    assert errors == {*CALL_AGAIN, *NEED_A_CHANGE}
    assert not NEED_A_CHANGE & {*CALL_AGAIN}
    assert {each.name for each in model.error_shapes if "Wait" in each.documentation} & errors <= {*CALL_AGAIN}


@dataclass
class HandlerDouble:
    """Lambda's client, which the interpreter calls.

    Attributes:
        errors: the errors of the first calls.
        outcomes: the outcomes that the handler would send to CloudFormation.
    """

    errors: list[str] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  Lambda's names
        assert FunctionName == HANDLER
        event = json.loads(Payload)
        if self.errors:
            answer = {"errorMessage": "a reason", "errorType": self.errors.pop(0)}
            return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), "FunctionError": "Unhandled"}
        if has_outcome(event):
            self.outcomes.append(event.get("Failure", {}))
        return {"StatusCode": 200, "Payload": io.BytesIO(b'{"IsComplete": true}')}


@pytest.fixture(name="handler")
def _handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandlerDouble]:
    handler = HandlerDouble()
    monkeypatch.setattr(lambda_eval_utils, "boto_client_for", lambda **_: handler)
    # A local AWS that ran in this process before has left moto machines with a map only.
    monkeypatch.setattr(machines, "has_map", lambda _: True)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield handler


@pytest.fixture(name="definition")
def _definition(world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> str:
    """The waiter of a store's template, which calls the handler by its ARN."""
    TritonArtifactStore(stack, "Store")
    machine = world.only(stack, "AWS::StepFunctions::StateMachine")
    return re.sub("<StoreIsComplete.*?>", HANDLER, flattened(machine["Properties"]["DefinitionString"]))


def wait_for_outcome(definition: str) -> str:
    """Run the waiter to its end; the answer is the status of the execution."""
    client = boto3.client("stepfunctions", region_name="us-east-1")
    role = "arn:aws:iam::123456789012:role/waiter"
    machine = client.create_state_machine(name="waiter", definition=definition, roleArn=role)
    started = client.start_execution(stateMachineArn=machine["stateMachineArn"], input="{}")
    while (status := client.describe_execution(executionArn=started["executionArn"])["status"]) == "RUNNING":
        threading.Event().wait(0.01)
    return str(status)


@pytest.mark.slow
@pytest.mark.parametrize("error", ["Lambda.ResourceNotReadyException", "Lambda.ErrorOfTheFuture"])
def test_a_function_that_does_not_run_yet_is_called_again(definition: str, handler: HandlerDouble, error: str) -> None:
    handler.errors = [error]
    assert wait_for_outcome(definition) == "SUCCEEDED"
    assert handler.outcomes == [{}]


def test_the_sentence_of_the_handler_is_the_outcome_at_once(definition: str, handler: HandlerDouble) -> None:
    handler.errors = ["ArtifactError"]
    assert wait_for_outcome(definition) == "SUCCEEDED"
    assert [outcome["Error"] for outcome in handler.outcomes] == ["ArtifactError"]


@pytest.mark.slow
def test_a_function_that_is_not_ready_again_for_the_answer_answers_later(
    definition: str, handler: HandlerDouble
) -> None:
    handler.errors = ["ArtifactError", "Lambda.ResourceNotReadyException", "Lambda.ResourceNotReadyException"]
    assert wait_for_outcome(definition) == "SUCCEEDED"
    assert [outcome["Error"] for outcome in handler.outcomes] == ["ArtifactError"]
