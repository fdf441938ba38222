"""Asynchronous requests of the client: where they go, and what an answer, or none, means."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from tests.client.conftest import BINARY, identity

from cdk_triton.client import AsyncResult, TritonClient
from cdk_triton.client.payload import decode_stored, encode
from cdk_triton.errors import (
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
    PayloadTooLargeError,
    ResultAccessError,
    ResultExpiredError,
    ResultNotReadyError,
)

if TYPE_CHECKING:
    from golden_messages import Messages

OUTPUT, FAILURE = "s3://b/async/output/one.out", "s3://b/async/failures/one-error.out"
X = {"x": np.arange(4, dtype=np.float32)}


def fault(code: str, headers: Mapping[str, str] | None = None) -> ClientError:
    metadata: Any = {"HTTPHeaders": dict(headers or {})}
    return ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": metadata}, "GetObject")


@dataclass
class S3:
    """An S3 whose objects, and answers for others, a test chooses."""

    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    faults: dict[str, ClientError] = field(default_factory=dict)
    may_list: bool = True
    reads: int = 0

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.reads += 1
        uri = f"s3://{Bucket}/{Key}"
        if uri in self.faults:
            raise self.faults[uri]
        if uri not in self.objects:
            raise fault("NoSuchKey")
        body, kind = self.objects[uri]
        return {"Body": io.BytesIO(body), "ContentType": kind}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, MaxKeys: int) -> dict[str, Any]:  # noqa: N803
        if not self.may_list:
            raise fault("AccessDenied")
        keys = [uri.removeprefix(f"s3://{Bucket}/") for uri in self.objects]
        return {"Contents": [{"Key": key} for key in keys if key.startswith(Prefix)][:MaxKeys]}

    def upload_fileobj(self, file: Any, bucket: str, key: str, ExtraArgs: dict[str, str]) -> None:  # noqa: N803
        self.objects[f"s3://{bucket}/{key}"] = (file.read(), ExtraArgs["ContentType"])


@dataclass
class Runtime:
    """Takes requests, and remembers them."""

    calls: list[dict[str, Any]] = field(default_factory=list)

    def invoke_endpoint(self, **_: Any) -> None:
        raise AssertionError

    def invoke_endpoint_async(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        return {"InferenceId": call["InferenceId"], "OutputLocation": OUTPUT, "FailureLocation": FAILURE}


def pending(s3: S3, **more: Any) -> AsyncResult:
    return AsyncResult("queued", "one", OUTPUT, FAILURE, s3=s3, **more)


def answered(*, binary: bool = True) -> bytes:
    body, kind = encode(X, {"binary": binary})
    return identity(body, kind)[1].body


# Requests.


def test_a_small_request_is_part_of_the_call() -> None:
    runtime, s3 = Runtime(), S3()
    found = TritonClient("queued", runtime, s3=s3).submit(X, queue_seconds=60, invocation_seconds=30)

    (call,) = runtime.calls
    assert (call["EndpointName"], call["RequestTTLSeconds"], call["InvocationTimeoutSeconds"]) == ("queued", 60, 30)
    assert call["ContentType"].startswith(BINARY)
    assert call["Body"]
    assert s3.objects == {}
    assert (found.output_location, found.failure_location) == (OUTPUT, FAILURE)
    assert found.inference_id == call["InferenceId"]


def test_a_large_request_goes_through_s3_under_a_key_of_its_own() -> None:
    runtime, s3 = Runtime(), S3()
    client = TritonClient("queued", runtime, input_location="s3://b/async/input/", s3=s3)
    large = {"x": np.zeros(40_000, np.float32)}
    for _ in range(2):
        client.submit(large, inference_id="mine", custom_attributes="tenant=7")

    assert [(call["InferenceId"], call["CustomAttributes"]) for call in runtime.calls] == [("mine", "tenant=7")] * 2
    places = [call["InputLocation"] for call in runtime.calls]
    assert len(set(places)) == 2
    assert all(place.startswith("s3://b/async/input/") for place in places)
    assert [s3.objects[each][1] for each in places] == [call["ContentType"] for call in runtime.calls]
    assert "Body" not in runtime.calls[0]
    assert json.loads(s3.objects[places[0]][0].partition(b"}]")[0] + b"}]}")["inputs"][0]["shape"] == [40_000]


@pytest.mark.parametrize(("members", "uploads"), [({"Body": 1}, 0), ({}, 1)], ids=["of June 2026", "older"])
def test_a_boto3_that_takes_no_body_uploads_small_requests(members: dict[str, int], uploads: int) -> None:
    shape = SimpleNamespace(input_shape=SimpleNamespace(members=members))
    runtime, s3 = Runtime(), S3()
    runtime.meta = SimpleNamespace(service_model=SimpleNamespace(operation_model=lambda name: shape))  # type: ignore[attr-defined]  # a part of boto3's client
    TritonClient("queued", runtime, input_location="s3://b/in", s3=s3).submit({"INPUT0": [["text"]]})
    assert [("Body" in call, "InputLocation" in call) for call in runtime.calls] == [(not uploads, bool(uploads))]


def test_the_limit_of_the_call_is_exact() -> None:
    runtime, s3 = Runtime(), S3()
    client = TritonClient("queued", runtime, input_location="s3://b/in", s3=s3)
    overhead = len(encode({"x": np.zeros(100_000, np.uint8)}, {})[0]) - 100_000

    client.submit({"x": np.zeros(128_000 - overhead, np.uint8)})
    client.submit({"x": np.zeros(128_001 - overhead, np.uint8)})

    assert [("Body" in call, "InputLocation" in call) for call in runtime.calls] == [(True, False), (False, True)]


def test_a_large_request_needs_a_place(messages: Messages) -> None:
    runtime = Runtime()
    with messages.raises(ConfigurationError):
        TritonClient("queued", runtime, s3=S3()).submit({"x": np.zeros(40_000, np.float32)})
    assert runtime.calls == []


def test_more_than_sagemaker_reads_is_not_sent(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.client.submission.MAX_ASYNC_BYTES", 150_000)
    runtime, s3 = Runtime(), S3()
    client = TritonClient("queued", runtime, input_location="s3://b/in", s3=s3)
    with messages.raises(PayloadTooLargeError) as caught:
        client.submit({"x": np.zeros(40_000, np.float32)})
    assert caught.value.limit == 150_000
    assert s3.objects == {}


@pytest.mark.parametrize(
    "arguments",
    [{"queue_seconds": 59}, {"queue_seconds": 21_601}, {"invocation_seconds": 0}, {"invocation_seconds": 3_601}],
    ids=str,
)
def test_times_that_sagemaker_rejects_are_rejected(messages: Messages, arguments: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        TritonClient("queued", Runtime(), s3=S3()).submit(X, **arguments)


def test_a_place_that_is_not_one_is_rejected(messages: Messages) -> None:
    places: tuple[Any, ...] = ("b/in", "s3://b", "https://b/in", 5)
    for place in places:
        with messages.raises(ConfigurationError):
            TritonClient("queued", Runtime(), input_location=place)


@pytest.mark.parametrize(
    ("inputs", "arguments"), [(None, {}), (5, {}), (X, {"binary": "no"})], ids=["nothing", "a number", "binary=no"]
)
def test_a_request_that_cannot_be_meant_is_rejected(messages: Messages, inputs: Any, arguments: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError):
        TritonClient("queued", Runtime(), s3=S3()).submit(inputs, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"submitted": datetime(2026, 11, 25)}, {"submitted": "now"}, {"queue_seconds": None}],
    ids=["no time zone", "text", "no seconds"],
)
def test_a_result_of_bad_times_is_rejected(messages: Messages, arguments: Any) -> None:
    with messages.raises(ConfigurationError):
        AsyncResult("queued", "id", "s3://b/out", s3=S3(), **arguments)


def test_a_result_without_a_location_is_rejected(messages: Messages) -> None:
    missing: Any = None
    with messages.raises(ConfigurationError):
        AsyncResult("queued", missing, missing, s3=S3()).result()


class Ssm:
    def __init__(self, **values: str) -> None:
        self.values = values

    def get_parameters(self, *, Names: list[str]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        found = {f"/search/{name.replace('__', '/').replace('_', '-')}": value for name, value in self.values.items()}
        return {"Parameters": [{"Name": name, "Value": found[name]} for name in Names if name in found]}


def test_a_client_is_made_of_the_parameters(messages: Messages) -> None:
    runtime, s3 = Runtime(), S3()
    ssm = Ssm(endpoint_name="queued", async__input="s3://b/in")
    TritonClient.from_parameters("/search", runtime, s3=s3, ssm=ssm).submit({"x": np.zeros(40_000, np.float32)})
    assert runtime.calls[0]["InputLocation"].startswith("s3://b/in/")

    assert TritonClient.from_parameters("/search", runtime, ssm=Ssm(endpoint_name="plain")).endpoint_name == "plain"
    with messages.raises(ConfigurationError):
        TritonClient.from_parameters("/search", runtime, ssm=Ssm())


def test_a_missing_permission_is_named(messages: Messages) -> None:
    class Denied(S3, Runtime, Ssm):
        def __init__(self) -> None:
            S3.__init__(self)

        def upload_fileobj(self, *_: Any, **__: Any) -> None:
            raise fault("AccessDenied")

        def invoke_endpoint_async(self, **_: Any) -> dict[str, Any]:
            raise fault("AccessDeniedException")

        def get_parameters(self, **_: Any) -> dict[str, Any]:
            raise fault("AccessDeniedException")

    denied = Denied()
    client = TritonClient("queued", denied, input_location="s3://b/in", s3=denied)
    calls: dict[str, Any] = {
        "sagemaker:InvokeEndpointAsync": lambda: client.submit(X),
        "ssm:GetParameters": lambda: TritonClient.from_parameters("/search", denied, ssm=denied),
    }
    for named, call in calls.items():
        with messages.raises(InvocationError) as caught:
            call()
        assert named in str(caught.value)
    with pytest.raises(InvocationError, match="s3:PutObject"):
        client.submit({"x": np.zeros(40_000, np.float32)})


# Answers.


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
@pytest.mark.parametrize("kind", ["binary/octet-stream", "application/json", ""])
def test_an_answer_is_read_whatever_its_content_type(kind: str, *, binary: bool) -> None:
    s3 = S3({OUTPUT: (answered(binary=binary), kind)})
    np.testing.assert_array_equal(pending(s3).result()["x"], X["x"])


def test_no_answer_yet_is_an_error_that_can_be_tried_again(messages: Messages) -> None:
    s3 = S3()
    waiting = pending(s3)
    with messages.raises(ResultNotReadyError) as caught:
        waiting.result()
    assert isinstance(caught.value, InvocationTimeoutError)

    s3.objects[OUTPUT] = (answered(), "")
    assert waiting.result()["x"].tolist() == X["x"].tolist()


def test_it_waits_as_long_as_it_may() -> None:
    s3 = S3()
    with pytest.raises(ResultNotReadyError):
        pending(s3).result(0.25)
    assert s3.reads > 2


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ('Received client error (400) from primary with message "{"error":"bad shape"}".', 400, "bad shape"),
        ('{"Message": "x", "OriginalStatusCode": 500, "OriginalMessage": "{\\"error\\": \\"oom\\"}"}', 500, "oom"),
        ('Received server error (0) from primary with message "timed out".', 0, "timed out"),
    ],
    ids=["text", "JSON", "no answer"],
)
def test_a_failure_of_the_container_is_the_error_of_infer(
    messages: Messages, text: str, status: int, words: str
) -> None:
    with messages.raises(ModelError) as caught:
        pending(S3({FAILURE: (text.encode(), "")})).result()
    assert (caught.value.status, caught.value.original_message) == (status, words)


def test_another_failure_is_an_invocation_error(messages: Messages) -> None:
    with messages.raises(InvocationError) as caught:
        pending(S3({FAILURE: (b"Failed to download the request", "")})).result()
    assert type(caught.value) is InvocationError


def test_a_request_that_expired_in_the_queue_is_told_apart(messages: Messages) -> None:
    with messages.raises(ResultExpiredError):
        pending(S3({FAILURE: (b"The request expired after 60 seconds in the queue.", "")})).result()


def test_an_object_that_was_there_has_expired(messages: Messages) -> None:
    s3 = S3(faults={OUTPUT: fault("NoSuchKey", {"x-amz-delete-marker": "true"})})
    with messages.raises(ResultExpiredError):
        pending(s3).result()


def test_after_all_times_nothing_can_come_any_more(messages: Messages) -> None:
    old = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    with messages.raises(ResultExpiredError):
        pending(S3(), submitted=old).result()
    just_in_time = datetime.now(UTC) - timedelta(seconds=1_000)
    with pytest.raises(ResultNotReadyError):
        pending(S3(), submitted=just_in_time, queue_seconds=300, invocation_seconds=300).result()


def test_a_403_is_not_yet_where_the_caller_may_list() -> None:
    s3 = S3(faults=dict.fromkeys((OUTPUT, FAILURE), fault("AccessDenied")))
    with pytest.raises(ResultNotReadyError):
        pending(s3).result()


def test_a_403_of_an_object_that_is_there_is_not_allowed(messages: Messages) -> None:
    s3 = S3({OUTPUT: (b"", "")}, {OUTPUT: fault("AccessDenied")})
    with messages.raises(ResultAccessError):
        pending(s3).result(60)


def test_a_403_without_the_list_is_not_allowed(messages: Messages) -> None:
    with messages.raises(ResultAccessError):
        pending(S3(faults={OUTPUT: fault("AccessDenied")}, may_list=False)).result(60)


def test_other_errors_of_s3_are_invocation_errors() -> None:
    with pytest.raises(InvocationError) as caught:
        pending(S3(faults={OUTPUT: fault("SlowDown")})).result(60)
    assert type(caught.value) is InvocationError


TENSORS = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable()),
    st.one_of(
        arrays_of.arrays(
            st.sampled_from([np.dtype(each) for each in ("f4", "f2", "i8", "u1", "?")]),
            arrays_of.array_shapes(max_dims=2, max_side=5),
        ),
        st.lists(st.binary(max_size=9), min_size=1, max_size=4).map(lambda each: np.array(each, dtype=object)),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@given(tensors=TENSORS, named=st.booleans(), cut=st.integers(min_value=1))
def test_any_answer_round_trips_and_a_truncated_one_is_an_error(tensors: dict[str, Any], named: bool, cut: int) -> None:
    body, kind = encode(tensors, {})
    answer = identity(body, kind)[1]
    stored_as = answer.content_type if named else "binary/octet-stream"

    found = decode_stored(answer.body, stored_as, where="here")
    assert set(found) == set(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array)
    shorter = answer.body[: len(answer.body) - 1 - cut % len(answer.body)]
    for wrong in (shorter, answer.body + b"x"):
        with pytest.raises(InvocationError):
            decode_stored(wrong, stored_as, where="here")


def test_a_header_beyond_the_first_read_is_found() -> None:
    many = {f"x{number}": np.zeros(1, np.uint8) for number in range(2_000)}
    body, kind = encode(many, {})
    answer = identity(body, kind)[1].body
    assert answer.rindex(b"}]}") > 65_536
    assert set(decode_stored(answer, "", where="here")) == set(many)


@pytest.mark.parametrize("timeout", [-1, float("nan"), True, "5", None])
def test_a_timeout_that_is_no_time_is_rejected(messages: Messages, timeout: Any) -> None:
    with messages.raises(ConfigurationError):
        AsyncResult("queued", "one", OUTPUT, FAILURE, s3=S3()).result(timeout)


@pytest.mark.parametrize("status", ["unknown", None, 1.5])
def test_an_error_message_without_a_status_is_an_error_of_sagemaker(status: Any) -> None:
    text = json.dumps({"message": "it failed", "OriginalStatusCode": status}).encode()
    with pytest.raises(InvocationError, match="SageMaker did not process the request: it failed"):
        AsyncResult("queued", "one", OUTPUT, FAILURE, s3=S3({FAILURE: (text, "application/json")})).result()
