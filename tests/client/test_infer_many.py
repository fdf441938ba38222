"""Many requests: which are sent together, in which order the answers come, and what a failure costs the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.client.conftest import identity

from cdk_triton.client import InferenceResult, TritonClient
from cdk_triton.errors import ConfigurationError, InvocationError, ModelError

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture
def client(endpoint: Any) -> TritonClient:
    return TritonClient("texts", endpoint.runtime())


def rows(*values: float) -> dict[str, Any]:
    return {"x": np.array(values, np.float32)[:, np.newaxis]}


def sizes(endpoint: Any) -> list[int]:
    """The number of rows of each request that came in."""
    return sorted(header["inputs"][0]["shape"][0] for _, _, header in endpoint.requests)


def values(answers: list[Any]) -> list[list[float]]:
    return [answer["x"][:, 0].tolist() for answer in answers]


def failing(answer: Any, fails: Callable[[Any], bool], status: int = 400, code: str = "ModelError") -> Any:
    """An identity model that fails the requests with certain values."""

    def handle(headers: Mapping[str, str], body: bytes) -> Any:
        _, good = identity(body, headers["content-type"])
        size = int(headers["content-type"].rpartition("=")[2])
        if not fails(np.frombuffer(body[size:], np.float32)):
            return good
        members = {"Message": "m", "OriginalStatusCode": status, "OriginalMessage": '{"error": "bad row"}'}
        return answer(json.dumps(members).encode(), "application/json", 424, {"x-amzn-ErrorType": code})

    return handle


def test_small_requests_are_sent_together_and_answered_in_order(client: TritonClient, endpoint: Any) -> None:
    answers = client.infer_many([rows(number) for number in range(20)], max_batch_size=8)

    assert sizes(endpoint) == [4, 8, 8]
    assert values(answers) == [[number] for number in range(20)]
    assert all(isinstance(answer, InferenceResult) and answer.model_name == "identity" for answer in answers)


def test_requests_of_several_rows_keep_their_rows(client: TritonClient, endpoint: Any) -> None:
    answers = client.infer_many([rows(1, 2, 3), rows(4, 5), rows(6, 7, 8), rows(9)], max_batch_size=5)
    assert sizes(endpoint) == [4, 5]
    assert values(answers) == [[1, 2, 3], [4, 5], [6, 7, 8], [9]]


def test_only_requests_of_the_same_names_types_and_shapes_go_together(client: TritonClient, endpoint: Any) -> None:
    requests: list[Any] = [
        {"x": np.zeros((1, 2), np.float32)},
        {"x": np.zeros((1, 3), np.float32)},
        {"x": np.ones((1, 2), np.float32)},
        {"x": np.zeros((1, 2), np.float64)},
        {"y": np.zeros((1, 2), np.float32)},
    ]
    answers: list[Any] = client.infer_many(requests, max_batch_size=8)
    assert sizes(endpoint) == [1, 1, 1, 2]
    for request, answer in zip(requests, answers, strict=True):
        for name, array in request.items():
            assert answer[name].dtype == array.dtype
            np.testing.assert_array_equal(answer[name], array)


def test_texts_of_unequal_length_go_together(client: TritonClient, endpoint: Any) -> None:
    requests: list[Any] = [{"t": [["one"]]}, {"t": np.array([["three"]])}, {"t": np.array([[b"\xff"]], dtype=object)}]
    answers: list[Any] = client.infer_many(requests, max_batch_size=8)
    assert sizes(endpoint) == [3]
    assert [answer["t"].tolist() for answer in answers] == [[[b"one"]], [[b"three"]], [[b"\xff"]]]


def test_requests_alone_need_no_batch_dimension(client: TritonClient, endpoint: Any) -> None:
    answers: list[Any] = client.infer_many([{"x": np.array(n, np.int32)} for n in range(3)], max_batch_size=1)
    assert [int(answer["x"]) for answer in answers] == [0, 1, 2]
    assert len(endpoint.requests) == 3


def test_a_bad_row_fails_its_own_request_only(client: TritonClient, endpoint: Any, answer: Any) -> None:
    endpoint.handle = failing(answer, lambda array: 13 in array)

    answers = client.infer_many([rows(number) for number in range(32)], max_batch_size=16)

    failed = [number for number, each in enumerate(answers) if not isinstance(each, InferenceResult)]
    assert failed == [13]
    assert isinstance(answers[13], ModelError)
    assert answers[13].original_message == "bad row"
    assert values([each for each in answers if isinstance(each, InferenceResult)]) == [
        [n] for n in range(32) if n != 13
    ]


@pytest.mark.parametrize(
    ("status", "code"), [(0, "ModelError"), (400, "ThrottlingException")], ids=["died", "throttled"]
)
def test_what_may_have_run_or_was_throttled_is_not_sent_again(
    client: TritonClient, endpoint: Any, answer: Any, status: int, code: str
) -> None:
    seen = []
    handle = failing(answer, lambda array: 1 in array, status, code)
    endpoint.handle = lambda *request: seen.append(request) or handle(*request)  # type: ignore[func-returns-value]

    answers = client.infer_many([rows(1), rows(2), rows(3)], max_batch_size=2)

    assert len(seen) == 2
    assert [isinstance(each, InvocationError) for each in answers] == [True, True, False]


def test_requests_that_cannot_be_sent_are_errors_in_their_place(messages: Messages, client: TritonClient) -> None:
    wrong: list[Any] = [
        {"x": 1.0},
        {},
        [1],
        {"x": np.zeros(())},
        {"x": np.zeros((1, 2)), "y": np.zeros((2, 2))},
        {"x": np.zeros((0, 2))},
    ]
    answers = client.infer_many([*wrong, rows(1)], max_batch_size=4)
    for each in answers[:-1]:
        assert isinstance(each, ConfigurationError)
        messages.record("ConfigurationError", str(each))
    assert values(answers[-1:]) == [[1]]


def test_a_batch_stays_below_the_limit_of_a_body(client: TritonClient, endpoint: Any) -> None:
    image = {"x": np.zeros((1, 1_500_000), np.uint8)}
    answers = client.infer_many([image] * 6, max_batch_size=8, concurrency=1)
    assert sizes(endpoint) == [2, 4]
    assert all(isinstance(each, InferenceResult) for each in answers)


def test_long_texts_are_halved_until_they_fit(client: TritonClient, endpoint: Any) -> None:
    answers = client.infer_many([{"t": [["a" * 2_500_000]]}] * 4, max_batch_size=8)
    assert sizes(endpoint) == [2, 2]
    assert all(isinstance(each, InferenceResult) for each in answers)


def test_an_output_without_the_rows_of_its_inputs_is_an_error(
    messages: Messages, client: TritonClient, endpoint: Any, answer: Any
) -> None:
    body = b'{"outputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}'
    endpoint.answer = lambda: answer(body, "application/json")
    answers = client.infer_many([rows(1), rows(2)], max_batch_size=2)
    assert all(isinstance(each, InvocationError) for each in answers)
    messages.record("InvocationError", str(answers[0]))


def test_no_more_requests_than_allowed_are_on_their_way(client: TritonClient, endpoint: Any) -> None:
    lock, all_here = threading.Lock(), threading.Barrier(3)
    now, most = 0, 0

    def handle(headers: Mapping[str, str], body: bytes) -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        all_here.wait(30)  # three are there at the same time, and a fourth is not
        with lock:
            now -= 1
        return identity(body, headers["content-type"])[1]

    endpoint.handle = handle
    assert len(client.infer_many([rows(n) for n in range(12)], max_batch_size=1, concurrency=3)) == 12
    assert most == 3


def test_options_reach_the_endpoint(client: TritonClient, endpoint: Any) -> None:
    wanted = (name for name in ["x"])  # an iterator, for several requests
    client.infer_many(
        [rows(n) for n in range(4)], max_batch_size=2, outputs=wanted, target_model="a.tar.gz", parameters={"k": 1}
    )
    for _, headers, header in endpoint.requests:
        assert headers["x-amzn-sagemaker-target-model"] == "a.tar.gz"
        assert [output["name"] for output in header["outputs"]] == ["x"]
        assert header["parameters"]["k"] == 1


@pytest.mark.parametrize("bounds", [{"max_batch_size": 0}, {"max_batch_size": 2, "concurrency": 0}], ids=str)
def test_bounds_are_whole_numbers_from_one(messages: Messages, client: TritonClient, bounds: Any) -> None:
    with messages.raises(ConfigurationError):
        client.infer_many([rows(1)], **bounds)


def test_a_default_client_does_not_use_boto3_for_them(environment: Any, endpoint: Any) -> None:
    client = TritonClient("texts")
    client.infer(rows(1))
    client.infer_many([rows(1)], max_batch_size=1)
    agents = [headers["user-agent"] for _, headers, _ in endpoint.requests]
    assert ["Boto3" in agent for agent in agents] == [True, False]


def test_no_requests_have_no_answers(client: TritonClient) -> None:
    assert client.infer_many([], max_batch_size=8) == []
