"""Streams, apart from Triton: what is sent, and what becomes of every piece that an endpoint may answer with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.client.streaming_endpoint import EVENTS, HI, Client, Streaming, event, words

from cdk_triton.client import AsyncTritonClient, TritonClient
from cdk_triton.errors import (
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
    NoCapacityError,
    PayloadTooLargeError,
)
from cdk_triton_local.wire import event_stream

if TYPE_CHECKING:
    from golden_messages import Messages


def test_a_request_is_flat_json(streaming: Streaming, stream: Client) -> None:
    streaming.parts = [event("a")]
    inputs = {
        "TEXT": "hü",
        "RAW": b"x",
        "COUNT": 3,
        "SCALE": np.float32(0.5),
        "IS": np.array([True]),
        "IDS": np.array([[1, 2, 3]], np.int16),
        "LIST": [1.5, 2],
        "TEXTS": ["a", "b"],
        "OBJECTS": np.array(["c", b"d"], object),
    }
    named = {"target_variant": "blue", "inference_component": "part"}
    stream(inputs, request_id="r", inference_id="i-1", custom_attributes="t=7", parameters={"k": True}, **named)
    [(path, headers, body)] = streaming.requests
    assert path == "/endpoints/texts/invocations-response-stream"
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Amzn-SageMaker-Target-Variant"] == "blue"
    assert headers["X-Amzn-SageMaker-Inference-Component"] == "part"
    assert headers["X-Amzn-SageMaker-Inference-Id"] == "i-1"
    assert headers["X-Amzn-SageMaker-Custom-Attributes"] == "t=7"
    assert body == {
        "TEXT": "hü",
        "RAW": "x",
        "COUNT": 3,
        "SCALE": 0.5,
        "IS": [True],
        "IDS": [1, 2, 3],
        "LIST": [1.5, 2.0],
        "TEXTS": ["a", "b"],
        "OBJECTS": ["c", "d"],
        "id": "r",
        "parameters": {"k": True},
    }


@pytest.mark.parametrize("size", [1, 7, 1000], ids=["bytes", "pieces", "joined"])
def test_a_part_is_not_an_event(streaming: Streaming, stream: Client, size: int) -> None:
    whole = b": hello\n\n" + event("ä", SCORES=[0.5, 1.0], id="r") + b"event: x\n\n" + event("b", SCORES=2)
    streaming.parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    first, second = stream(HI)
    assert first["TEXT"].tolist() == ["ä".encode()]
    np.testing.assert_array_equal(first["SCORES"], [0.5, 1.0])
    np.testing.assert_array_equal(second["SCORES"], [2])
    assert (first.model_name, first.model_version, first.request_id, first.variant) == ("m", "1", "r", "blue")
    assert first.datatypes == {"TEXT": "BYTES", "SCORES": "FP64"}
    assert second.datatypes == {"TEXT": "BYTES", "SCORES": "INT64"}
    assert second.infer_result.as_numpy("TEXT").tolist() == ["b"]


BIG = [2**64 - 1, 1, 2**63 + 1]


@pytest.mark.parametrize("values", [BIG, [-(2**63), 2**63 - 1], [2**63], 2**53 + 1])
def test_integers_keep_their_digits(streaming: Streaming, stream: Client, values: Any) -> None:
    streaming.parts = [event("a", y=values)]
    [result] = stream({"x": values})
    assert streaming.requests[0][2]["x"] == values
    assert result["y"].tolist() == (values if isinstance(values, list) else [values])
    assert result["y"].dtype.kind in "iu"


@pytest.mark.parametrize("values", ["null", "[null, 1.5]", "[-1, 9223372036854775808]", "[18446744073709551616]"])
def test_a_value_that_no_tensor_holds_is_an_error(streaming: Streaming, stream: Client, values: str) -> None:
    streaming.parts = [b'data: {"y": ' + values.encode() + b"}\n\n"]
    with pytest.raises(InvocationError, match=r"not an answer of Triton's generate protocol"):
        stream(HI)


BROKEN = [
    pytest.param([event("a"), b'data: {"error": "out of words"}\n\n'], ModelError, id="an error event"),
    pytest.param([event("a"), ("ModelStreamError", "Your model did not complete.")], ModelError, id="ModelStreamError"),
    pytest.param([event("a"), ("InternalStreamFailure", "unknown")], InvocationError, id="InternalStreamFailure"),
    pytest.param([event("a"), "cut"], InvocationError, id="a broken connection"),
    pytest.param([event("a"), event("b")[:-9]], InvocationError, id="half an event"),
    pytest.param([event("a"), b"data: [1]\n\n"], InvocationError, id="not an object"),
    pytest.param([event("a"), b"data: [DONE]\n\n"], InvocationError, id="not JSON"),
    pytest.param([event("a"), b'data: {"TEXT": [[1]]}\n\n'], InvocationError, id="not flat"),
]


@pytest.mark.parametrize(("parts", "kind"), BROKEN)
def test_what_breaks_a_stream_is_an_error_after_its_results(
    streaming: Streaming, parts: list[Any], kind: type[InvocationError], messages: Messages
) -> None:
    streaming.parts = parts
    results = TritonClient("texts").stream(HI)
    assert next(results)["TEXT"] == [b"a"]
    with pytest.raises(InvocationError) as caught:
        next(results)
    assert type(caught.value) is kind
    messages.record(type(caught.value).__name__, str(caught.value))
    assert list(results) == []


@pytest.mark.parametrize(("parts", "kind"), BROKEN)
def test_what_breaks_a_stream_is_the_same_error_for_asyncio(
    streaming: Streaming, parts: list[Any], kind: type[InvocationError]
) -> None:
    async def main() -> None:
        async with AsyncTritonClient("texts") as client:
            results = await client.stream(HI)
            assert (await anext(results))["TEXT"] == [b"a"]
            with pytest.raises(InvocationError) as caught:
                await anext(results)
            assert type(caught.value) is kind

    streaming.parts = parts
    asyncio.run(main())


def test_an_error_event_has_the_words_of_the_model(streaming: Streaming, stream: Client) -> None:
    streaming.parts = [b'data: {"error": "out of words"}\n\n']
    with pytest.raises(ModelError) as caught:
        stream(HI)
    assert (caught.value.status, caught.value.original_message) == (200, "out of words")


def test_silence_is_a_timeout(streaming: Streaming, messages: Messages) -> None:
    import boto3
    from botocore.config import Config

    streaming.parts = [event("a"), None]
    runtime = boto3.client("sagemaker-runtime", config=Config(read_timeout=0.3, retries={"total_max_attempts": 1}))
    results = TritonClient("texts", runtime).stream(HI)
    next(results)
    with pytest.raises(InvocationTimeoutError) as caught:
        next(results)
    messages.record(type(caught.value).__name__, str(caught.value))


EARLY: dict[str, tuple[int, dict[str, Any], type[InvocationError]]] = {
    "ModelError": (424, {"OriginalStatusCode": 400, "OriginalMessage": '{"error": "no PROMPT"}'}, ModelError),
    "ValidationError": (400, {"Message": "The component has no capacity to process this request."}, NoCapacityError),
    "AccessDeniedException": (403, {"Message": "not authorized"}, InvocationError),
}


@pytest.mark.parametrize("code", EARLY)
def test_an_error_before_the_first_part_is_raised_by_the_call(
    streaming: Streaming, stream: Client, code: str, messages: Messages
) -> None:
    status, members, kind = EARLY[code]
    streaming.status, streaming.content_type = status, "application/json"
    streaming.parts = [json.dumps({"code": code, "Message": "failed", **members}).encode()]
    with pytest.raises(InvocationError) as caught:
        stream(HI)
    assert type(caught.value) is kind
    messages.record(type(caught.value).__name__, str(caught.value))


@pytest.mark.parametrize(
    ("words_of_server", "method"),
    [
        pytest.param("Unable to parse 'inputs': attempt to access non-existing object member 'inputs'", "stream"),
        pytest.param("parameter 'inputs' has invalid type. It should be either 'int', 'bool', or 'string'.", "infer"),
        pytest.param(
            "failed to parse the request JSON buffer: The document root must not be followed by other values. at 91",
            "infer",
        ),
    ],
    ids=["generate on infer", "infer in JSON on generate", "infer on generate"],
)
def test_the_wrong_protocol_is_named(
    endpoint: Any, answer: Any, words_of_server: str, method: str, messages: Messages
) -> None:
    body = {"OriginalStatusCode": 400, "OriginalMessage": json.dumps({"error": words_of_server}), "Message": "failed"}
    headers = {"x-amzn-ErrorType": "ModelError"}
    endpoint.handle = lambda *_: answer(json.dumps(body).encode(), "application/json", 424, headers)
    with pytest.raises(ModelError) as caught:
        getattr(TritonClient("texts", endpoint.runtime()), method)({"x": np.zeros(1, np.float32)})
    assert "inference_type" in str(caught.value)
    messages.record(type(caught.value).__name__, str(caught.value))


def test_the_stream_of_an_endpoint_that_generates_has_one_result(streaming: Streaming, stream: Client) -> None:
    streaming.content_type = "application/json"
    whole = json.dumps({"TEXT": "a", "SCORES": [1, 2], "model_name": "m"}).encode()
    streaming.parts = [whole[:9], whole[9:]]
    [result] = stream(HI)
    assert (words([result]), result["SCORES"].tolist()) == (["a"], [1, 2])


def test_the_stream_of_an_endpoint_that_infers_has_one_result(streaming: Streaming, stream: Client) -> None:
    streaming.content_type = "application/json"
    tensor = {"name": "TEXT", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}
    streaming.parts = [json.dumps({"model_name": "m", "outputs": [tensor]}).encode()]
    [result] = stream(HI)
    assert result["TEXT"].tolist() == [[b"a"]]


@pytest.mark.parametrize("value", [["a"], "a"])
def test_an_output_can_have_the_name_outputs(streaming: Streaming, stream: Client, value: Any) -> None:
    streaming.content_type = "application/json"
    streaming.parts = [json.dumps({"outputs": value, "model_name": "m", "model_version": "1"}).encode()]
    [result] = stream(HI)
    assert result["outputs"].tolist() == [b"a"]


@pytest.mark.parametrize("content_type", ["application/json", EVENTS])
def test_generate_returns_the_one_result(streaming: Streaming, generate: Client, content_type: str) -> None:
    streaming.content_type = content_type
    streaming.parts = [event("a") if content_type == EVENTS else event("a").removeprefix(b"data: ").strip()]
    assert words(generate(HI)) == ["a"]
    assert streaming.requests[0][0] == "/endpoints/texts/invocations"


@pytest.mark.parametrize("count", [0, 2])
def test_generate_of_another_number_of_results_is_an_error(
    streaming: Streaming, generate: Client, count: int, messages: Messages
) -> None:
    streaming.parts = [event("a")] * count
    with pytest.raises(InvocationError) as caught:
        generate(HI)
    messages.record(type(caught.value).__name__, str(caught.value))


def test_generate_raises_the_error_within_a_success(streaming: Streaming, generate: Client, messages: Messages) -> None:
    streaming.content_type = "application/json"
    streaming.parts = [b'{"error":"generate expects model to produce exactly 1 response, use generate stream"}']
    with pytest.raises(ModelError) as caught:
        generate(HI)
    assert caught.value.status == 200
    messages.record(type(caught.value).__name__, str(caught.value))


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param({"x": np.zeros(1, np.float16)}, id="FP16"),
        pytest.param({"x": np.zeros((2, 2), np.float32)}, id="two dimensions"),
        pytest.param({"x": [[1, 2], [3, 4]]}, id="lists of lists"),
        pytest.param({"x": [[1], [1, 2]]}, id="ragged"),
        pytest.param({"x": b"\xff"}, id="not UTF-8"),
        pytest.param({"x": None}, id="None"),
        pytest.param({"x": {"y": 1}}, id="an object"),
        pytest.param({"x": [1, "a"]}, id="numbers and texts"),
        pytest.param({"x": 1 + 2j}, id="complex"),
        pytest.param({"x": [-1, 2**63]}, id="no integer type"),
        pytest.param({"parameters": 1}, id="the name parameters"),
        pytest.param([1], id="no names"),
        pytest.param({"x": "\ud800"}, id="half a character"),
    ],
)
def test_an_input_that_cannot_be_sent_is_one_sentence(streaming: Streaming, inputs: Any, messages: Messages) -> None:
    client = TritonClient("texts")
    with pytest.raises(ConfigurationError) as caught:
        client.stream(inputs)
    with pytest.raises(ConfigurationError, match=r".") as of_generate:
        client.generate(inputs)
    assert str(of_generate.value) == str(caught.value)
    messages.record(type(caught.value).__name__, str(caught.value))
    assert streaming.requests == []


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [({"k": {1, 2}}, "not JSON serializable"), ({"priority": 1}, "has no meaning in Triton's generate protocol")],
)
def test_a_parameter_that_cannot_be_sent_is_one_sentence(
    streaming: Streaming, messages: Messages, parameters: Any, reason: str
) -> None:
    for method in (TritonClient("texts").stream, TritonClient("texts").generate):
        with messages.raises(ConfigurationError) as caught:
            method(HI, parameters=parameters)
        assert reason in str(caught.value)
    assert streaming.requests == []


def test_an_input_id_is_not_the_identifier_of_the_request(
    streaming: Streaming, stream: Client, messages: Messages
) -> None:
    streaming.parts = [event("a")]
    stream({"id": np.array([5]), "x": 1}, parameters={"k": True})
    assert streaming.requests[0][2] == {"x": 1, "parameters": {"k": True, "id": [5]}}
    with messages.raises(ConfigurationError):
        stream({"id": 5}, request_id="r")
    with messages.raises(ConfigurationError):
        stream({"id": 5}, parameters={"id": "mine"})
    assert len(streaming.requests) == 1


CONFIG = """
backend: "python"
input { name: "PROMPT" data_type: TYPE_STRING dims: 1 }
output { name: "SCORES" data_type: TYPE_FP32 dims: -1 }
"""


def test_a_repository_has_the_types_but_not_all_names(streaming: Streaming, tmp_path: Path) -> None:
    """The server can complete outputs, a model can add parameters, and an ensemble adds three of its own."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.pbtxt").write_text(CONFIG)
    of_ensemble = {"sequence_id": 0, "sequence_start": False, "sequence_end": False}
    streaming.parts = [event("a", SCORES=[1, 2], finish_reason="stop", **of_ensemble)]
    [result] = TritonClient("texts").for_repository(tmp_path).stream(HI)
    assert {name: array.dtype for name, array in result.outputs.items()} == {
        "TEXT": object,
        "SCORES": np.float32,
        "finish_reason": object,
    }
    assert result["finish_reason"].tolist() == [b"stop"]


def test_a_request_that_is_too_large_is_not_sent(streaming: Streaming, stream: Client) -> None:
    with pytest.raises(PayloadTooLargeError):
        stream({"x": "a" * 6_291_456})
    assert streaming.requests == []


def test_a_stream_whose_endpoint_is_gone_is_an_error(
    environment: pytest.MonkeyPatch, closed_port: int, stream: Client
) -> None:
    environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    with pytest.raises(InvocationError, match="no connection"):
        stream(HI)


def test_a_damaged_stream_is_an_error(
    streaming: Streaming, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    part = event_stream.payload_part(event("a"))
    monkeypatch.setattr(event_stream, "payload_part", lambda _: part[:-1] + bytes([part[-1] ^ 1]))
    streaming.parts = [event("a")]
    with pytest.raises(InvocationError) as caught:
        list(TritonClient("texts").stream(HI))
    messages.record(type(caught.value).__name__, str(caught.value))
