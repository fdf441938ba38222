"""The runtime on urllib3 does what boto3 does, and rejects what only boto3 can do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import numpy as np
import pytest
from botocore.exceptions import ClientError

from cdk_triton.client import TritonClient
from cdk_triton.client.direct_runtime import DirectRuntime
from cdk_triton.client.payload import encode
from cdk_triton.errors import (
    CdkTritonError,
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
)

if TYPE_CHECKING:
    from golden_messages import Messages

X = {"x": np.arange(4, dtype=np.float32).reshape(1, 4)}


@pytest.fixture
def client(environment: Any) -> TritonClient:
    return TritonClient("texts", DirectRuntime())


def test_a_request_and_its_answer_are_those_of_boto3(client: TritonClient, endpoint: Any) -> None:
    options: Any = {"target_model": "a b.tar.gz", "target_variant": "blue", "inference_component": "c"}
    answers = [each.infer(X, **options) for each in (TritonClient("texts", endpoint.runtime()), client)]

    by_boto3, direct = endpoint.requests
    assert direct[0] == by_boto3[0]
    assert direct[2] == by_boto3[2]
    ours = {name for name in by_boto3[1] if name.startswith(("x-amzn", "content-"))}
    assert {name: direct[1][name] for name in ours} == {name: by_boto3[1][name] for name in ours}
    assert "AWS4-HMAC-SHA256 Credential=none/" in direct[1]["authorization"]
    assert "/eu-west-1/sagemaker/aws4_request" in direct[1]["authorization"]
    for name in X:
        np.testing.assert_array_equal(answers[1][name], answers[0][name])
    assert answers[1].variant == answers[0].variant == "AllTraffic"


def test_the_default_client_names_itself_as_boto3_does(environment: Any, endpoint: Any) -> None:
    """Its User-Agent is made once, and has what boto3 adds for each call."""
    environment.setenv("AWS_SDK_UA_APP_ID", "shop")
    for runtime in (boto3.client("sagemaker-runtime"), None):
        TritonClient("texts", runtime).infer(X)

    by_boto3, ours = ([*each[1]["user-agent"].split()] for each in endpoint.requests)
    assert "app/shop" in ours
    assert [each for each in by_boto3 if each not in ours and not each.startswith(("m/", "cfg/"))] == []


def test_all_members_of_an_answer_are_those_of_boto3(environment: Any, endpoint: Any, answer: Any) -> None:
    headers = {"X-Amzn-SageMaker-Custom-Attributes": "a=b", "X-Amzn-SageMaker-New-Session-Id": "s; Expires=1"}
    endpoint.answer = lambda: answer(b"bytes", "text/plain", 200, headers)
    body, content_type = encode(X, {})
    arguments = {"EndpointName": "texts", "Body": body, "ContentType": content_type}

    by_boto3, direct = (each.invoke_endpoint(**arguments) for each in (endpoint.runtime(), DirectRuntime()))
    assert by_boto3.pop("ResponseMetadata")
    assert direct.pop("Body").read() == by_boto3.pop("Body").read() == b"bytes"
    assert direct == by_boto3
    assert set(direct) == {"ContentType", "InvokedProductionVariant", "CustomAttributes", "NewSessionId"}


def test_an_asynchronous_call_is_that_of_boto3(environment: Any, endpoint: Any, answer: Any) -> None:
    headers = {"X-Amzn-SageMaker-OutputLocation": "s3://b/out", "X-Amzn-SageMaker-FailureLocation": "s3://b/bad"}
    seen = []

    def handle(sent: Any, body: bytes) -> Any:
        seen.append((sent, body))
        return answer(json.dumps({"InferenceId": "one"}).encode(), "application/json", 202, headers)

    endpoint.handle = handle
    for runtime in (boto3.client("sagemaker-runtime"), DirectRuntime()):
        found = TritonClient("texts", runtime).submit(X)
        assert (found.inference_id, found.output_location, found.failure_location) == (
            "one",
            "s3://b/out",
            "s3://b/bad",
        )
    names = [name for name in seen[0][0] if name.startswith("x-amzn-sagemaker") and "inference-id" not in name]
    assert len(names) > 2
    assert [seen[0][0][name] for name in names] == [seen[1][0][name] for name in names]
    assert seen[0][1] == seen[1][1]


ERRORS = {
    "model": (424, "ModelError", {"Message": "m", "OriginalStatusCode": 507, "OriginalMessage": '{"error": "no GPU"}'}),
    "validation": (400, "ValidationError", {"Message": "Endpoint texts of account 1 not found."}),
    "throttling": (429, "ThrottlingException", {"message": "Rate exceeded"}),
    "busy": (503, "ServiceUnavailable", {"Message": "busy"}),
    "no type": (500, None, {"message": "?"}),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_has_the_class_and_the_words_that_it_has_with_boto3(
    client: TritonClient, endpoint: Any, answer: Any, case: str
) -> None:
    status, code, members = ERRORS[case]
    headers = {} if code is None else {"x-amzn-ErrorType": f"{code}:http://internal.amazon.com/"}
    endpoint.answer = lambda: answer(json.dumps(members).encode(), "application/json", status, headers)

    errors = []
    for each in (TritonClient("texts", endpoint.runtime()), client):
        with pytest.raises(InvocationError) as caught:
            each.infer(X)
        errors.append(caught.value)

    by_boto3, direct = errors
    assert (type(direct), str(direct)) == (type(by_boto3), str(by_boto3))
    assert isinstance(direct.__cause__, ClientError)
    if isinstance(direct, ModelError):
        assert (direct.status, direct.original_message) == (507, "no GPU")


def test_an_error_that_is_not_json_is_an_invocation_error(client: TritonClient, endpoint: Any, answer: Any) -> None:
    endpoint.answer = lambda: answer(b"<html>Bad gateway</html>", "text/html", 502)
    with pytest.raises(InvocationError, match="502"):
        client.infer(X)


def test_a_slow_container_is_a_timeout_and_is_asked_once(environment: Any, endpoint: Any, never: Any) -> None:
    endpoint.answer = never
    with pytest.raises(InvocationTimeoutError, match="the model may have run"):
        TritonClient("texts", DirectRuntime(read_timeout=0.2)).infer(X)
    assert endpoint.arrived() == 1


def test_a_closed_port_is_named(environment: Any, closed_port: int) -> None:
    environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    with pytest.raises(InvocationError, match=f"no connection: .*127.0.0.1:{closed_port}"):
        TritonClient("texts", DirectRuntime()).infer(X)


def test_a_connection_that_breaks_is_an_invocation_error(client: TritonClient, endpoint: Any) -> None:
    endpoint.answer = lambda: None
    with pytest.raises(InvocationError, match="Connection was closed"):
        client.infer(X)


def test_no_credentials_are_an_error_with_a_fix(messages: Messages, environment: Any, endpoint: Any) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    client = TritonClient("texts", DirectRuntime())
    with messages.raises(InvocationError):
        client.infer(X)
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("variables", "ways"),
    [
        ({"HTTPS_PROXY": "http://proxy:3128"}, ["NO_PROXY"]),
        ({"AWS_CA_BUNDLE": "/etc/company.pem"}, []),
        ({"REQUESTS_CA_BUNDLE": "/etc/company.pem"}, []),
    ],
    ids=["proxy", "CA bundle of AWS", "CA bundle of requests"],
)
def test_what_only_boto3_uses_is_rejected(
    messages: Messages, environment: Any, variables: dict[str, str], ways: list[str]
) -> None:
    environment.delenv("AWS_ENDPOINT_URL")
    for name, value in variables.items():
        environment.setenv(name, value)
    with messages.raises(ConfigurationError):
        DirectRuntime()
    for way in ways:
        environment.setenv(way, "sagemaker.eu-west-1.amazonaws.com,.amazonaws.com")
        DirectRuntime().close()


@pytest.mark.parametrize(
    "target", ["", "a\r\nX-Evil: 1", "ü.tar.gz", 1.5], ids=["empty", "line break", "not ASCII", "number"]
)
def test_a_value_that_cannot_be_a_header_is_rejected(client: TritonClient, endpoint: Any, target: Any) -> None:
    with pytest.raises(CdkTritonError):
        client.infer(X, target_model=target)
    assert endpoint.requests == []


def test_an_argument_that_the_operation_does_not_have_is_rejected(environment: Any, messages: Messages) -> None:
    class Wrong(DirectRuntime):
        def invoke_endpoint(self, **arguments: Any) -> dict[str, Any]:
            return super().invoke_endpoint(**arguments, TargetModle="x")

    with messages.raises(ConfigurationError):
        TritonClient("texts", Wrong()).infer(X)
