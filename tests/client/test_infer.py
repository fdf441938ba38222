"""What goes in comes out: the client against an endpoint that answers with its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from cdk_triton.client import TritonClient
from cdk_triton.client.payload import decode, encode
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


TEXTS = np.array([["A man is eating food.", "ümläut 🦊"], ["", "naïve"]], dtype=object)


@pytest.fixture
def client(endpoint: Any) -> TritonClient:
    return TritonClient("texts", endpoint.runtime())


def test_a_client_has_the_name_of_its_endpoint(client: TritonClient) -> None:
    assert client.endpoint_name == "texts"


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_every_shared_data_type_survives_the_way_there_and_back(
    client: TritonClient, arrays: dict[str, Any], binary: bool
) -> None:
    if not binary:
        del arrays["float16"]

    answer = client.infer(arrays, binary=binary)

    assert list(answer) == list(arrays)
    for name, array in arrays.items():
        assert answer[name].dtype == array.dtype
        np.testing.assert_array_equal(answer[name], array)


def test_bfloat16_travels_as_binary(client: TritonClient) -> None:
    array = np.array([[1.5, -2.0]], dtype=ml_dtypes.bfloat16)
    answer = client.infer({"x": array})
    assert answer["x"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(answer["x"], array)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        TEXTS.astype(str),
        np.array([[text.encode() for text in row] for row in TEXTS], dtype=object),
        np.char.encode(TEXTS.astype(str), "utf-8"),
        np.empty((0, 2), dtype=object),
        TEXTS.tolist(),
    ],
    ids=["str objects", "unicode array", "bytes objects", "bytes array", "no rows", "nested lists"],
)
def test_text_comes_back_as_bytes_whatever_it_was_and_however_it_travelled(
    client: TritonClient, texts: Any, binary: bool
) -> None:
    answer = client.infer({"INPUT0": texts}, binary=binary)["INPUT0"]

    assert answer.shape == np.shape(texts)
    expected = [text.encode() if isinstance(text, str) else text for text in np.asarray(texts, dtype=object).flat]
    assert list(answer.flat) == expected


def test_bytes_that_are_no_text_travel_as_binary_and_are_rejected_as_json(
    messages: Messages, client: TritonClient
) -> None:
    jpeg = np.array([b"\xff\xd8\xff\x00\x00"], dtype=object)

    assert client.infer({"image": jpeg})["image"][0] == b"\xff\xd8\xff\x00\x00"
    with messages.raises(ConfigurationError):
        client.infer({"image": jpeg}, binary=False)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
        np.arange(12, dtype=np.int16)[::3],
    ],
    ids=["big-endian", "transposed", "strided"],
)
def test_memory_layout_does_not_change_the_values(client: TritonClient, array: Any) -> None:
    np.testing.assert_array_equal(client.infer({"x": array})["x"], array)


def test_binary_is_the_default_and_the_header_size_is_in_the_content_type(client: TritonClient, endpoint: Any) -> None:
    client.infer({"x": np.zeros((1, 4), np.float32)})

    _, headers, request = endpoint.requests[-1]
    assert headers["content-type"].startswith("application/vnd.sagemaker-triton.binary+json;json-header-size=")
    assert request["inputs"][0]["parameters"] == {"binary_data_size": 16}
    assert request["parameters"] == {"binary_data_output": True}


def test_json_is_readable_both_ways(client: TritonClient, endpoint: Any) -> None:
    answer = client.infer({"x": np.ones((1, 2), np.float32)}, binary=False)

    _, headers, request = endpoint.requests[-1]
    assert headers["content-type"] == "application/json"
    assert request["inputs"] == [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.0, 1.0]}]
    assert answer.infer_result.get_output("x")["data"] == [1.0, 1.0]


def test_the_result_of_tritonclient_is_made_at_its_first_use(
    client: TritonClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, parsed = InferenceServerClient.parse_response_body, list[bytes]()

    def recorded(body: bytes, *arguments: Any, **named: Any) -> Any:
        parsed.append(body)
        return parse(body, *arguments, **named)

    monkeypatch.setattr(InferenceServerClient, "parse_response_body", staticmethod(recorded))

    answer = client.infer({"x": np.ones((1, 2), np.float32)})
    of_endpoint = len(parsed)  # the endpoint of the tests decodes the request
    results = [answer.infer_result, answer.infer_result]

    assert (of_endpoint, len(parsed)) == (1, 2)
    assert results[0] is results[1]


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_only_the_wanted_outputs_are_asked_for(client: TritonClient, binary: bool) -> None:
    inputs = {"a": np.zeros(1, np.int32), "b": np.ones(1, np.int32)}

    assert list(client.infer(inputs, outputs=["b"], binary=binary)) == ["b"]
    assert list(client.infer(inputs, outputs=[InferRequestedOutput("a")], binary=True)) == ["a"]


def test_target_model_variant_and_request_id_reach_the_endpoint(client: TritonClient, endpoint: Any) -> None:
    answer = client.infer(
        {"x": np.zeros(1, np.int8)},
        target_model="text-0123456789.tar.gz",
        target_variant="blue",
        request_id="r-17",
        parameters={"temperature": 1},
    )

    path, headers, request = endpoint.requests[-1]
    assert path == "/endpoints/texts/invocations"
    assert headers["x-amzn-sagemaker-target-model"] == "text-0123456789.tar.gz"
    assert headers["x-amzn-sagemaker-target-variant"] == "blue"
    assert request["parameters"]["temperature"] == 1
    assert (answer.request_id, answer.model_name, answer.model_version) == ("r-17", "identity", "1")
    assert answer.variant == "AllTraffic"


def test_the_component_reaches_the_endpoint(client: TritonClient, endpoint: Any) -> None:
    client.infer({"x": np.zeros(1, np.int8)}, inference_component="text-0123456")

    assert endpoint.requests[-1][1]["x-amzn-sagemaker-inference-component"] == "text-0123456"


def test_inputs_may_be_tritonclient_types(client: TritonClient) -> None:
    tensor = InferInput("x", [1, 2], "INT32").set_data_from_numpy(np.array([[1, 2]], np.int32))

    for inputs in ({"x": tensor}, [tensor]):
        np.testing.assert_array_equal(client.infer(inputs)["x"], [[1, 2]])


def test_an_input_prepared_as_json_needs_no_binary_content_type(client: TritonClient, endpoint: Any) -> None:
    tensor = InferInput("x", [1], "INT32").set_data_from_numpy(np.array([7], np.int32), binary_data=False)

    np.testing.assert_array_equal(client.infer([tensor])["x"], [7])
    assert endpoint.requests[-1][1]["content-type"] == "application/json"


def test_a_missing_output_is_named_together_with_those_that_came(messages: Messages, client: TritonClient) -> None:
    answer = client.infer({"x": np.zeros(1, np.int8)})

    assert "y" not in answer
    with messages.raises(KeyError):
        answer["y"]


@pytest.mark.parametrize(
    ("inputs", "binary"),
    [
        ({"x": 1.0}, True),
        ({"x": [[1.0]]}, True),
        ({"x": [["a"], ["b", "c"]]}, True),
        ({"x": [np.zeros((2, 3)), np.zeros((2, 4))]}, True),
        ({"x": [np.zeros(2, np.uint8), np.zeros(3, np.uint8)]}, True),
        ({"x": [[["a"], ["b", "c"]], [["d"], ["e", "f"]]]}, False),
        ({"x": np.fromiter([np.zeros(2), np.zeros(2)], object)}, True),
        ({"x": np.array([1j])}, True),
        ({"x": np.array(["2026-01-01"], dtype="datetime64[D]")}, True),
        ({"x": np.array(["a", None], dtype=object)}, True),
        ({"x": np.zeros(1, np.float16)}, False),
        ({"x": InferInput("y", [1], "INT8")}, True),
        ([np.zeros(1)], True),
        ([InferInput("y", [1], "INT8").set_data_from_numpy(np.zeros(1, np.int8))], False),
    ],
    ids=[
        "scalar",
        "list of numbers",
        "ragged list",
        "ragged arrays",
        "files of different lengths",
        "ragged rows of rows",
        "array of arrays",
        "complex",
        "date",
        "None",
        "FP16 as JSON",
        "two names",
        "no name",
        "binary InferInput as JSON",
    ],
)
def test_what_cannot_be_sent_is_rejected_before_anything_is_sent(
    messages: Messages, client: TritonClient, endpoint: Any, inputs: Any, binary: bool
) -> None:
    with messages.raises(ConfigurationError):
        client.infer(inputs, binary=binary)
    assert endpoint.requests == []


def test_an_output_is_asked_for_once(messages: Messages, client: TritonClient, endpoint: Any) -> None:
    with messages.raises(ConfigurationError):
        client.infer({"x": np.zeros(1)}, outputs=["a", InferRequestedOutput("b"), "a"])
    assert endpoint.requests == []


def test_a_reserved_parameter_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="use the option priority"):
        encode({"x": np.zeros(1, np.int8)}, {"parameters": {"priority": 1}})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    array=npst.arrays(
        dtype=st.one_of(
            npst.integer_dtypes(), npst.unsigned_integer_dtypes(), npst.floating_dtypes(sizes=(16, 32, 64))
        ),
        shape=npst.array_shapes(min_dims=0, max_dims=4, min_side=0),
    )
)
def test_any_numeric_array_survives_encoding(array: Any) -> None:
    _round_trip(array)


@settings(max_examples=60)
@given(texts=st.lists(st.one_of(st.text(), st.binary()), max_size=5))
def test_any_text_and_any_bytes_survive_encoding(texts: list[str | bytes]) -> None:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    body, content_type = encode({"x": array}, {})
    answer = decode(*_answered(body, content_type))
    assert list(answer["x"]) == [text.encode() if isinstance(text, str) else text for text in texts]


def _round_trip(array: Any) -> None:
    answer = decode(*_answered(*encode({"x": array}, {})))
    assert answer["x"].shape == array.shape
    np.testing.assert_array_equal(answer["x"], array)


def _answered(body: bytes, content_type: str) -> tuple[bytes, str]:
    """Make the response that holds the tensors of a request: only the key of the list differs."""
    prefix, size = content_type.rsplit("=", 1)
    head = body[: int(size)].replace(b'"inputs":', b'"outputs":', 1)
    return head + body[int(size) :], f"{prefix}={len(head)}"
