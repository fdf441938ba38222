"""Streamed answers of a real tritonserver, as boto3 reads them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError, EventStreamError

from streaming_account import StreamingAccount, streaming_account


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamingAccount]:
    with streaming_account(tmp_path_factory.mktemp("streams")) as account:
        yield account


def sent(account: StreamingAccount, endpoint: str, inputs: dict[str, Any], **more: str) -> Any:
    """The answer to InvokeEndpointWithResponseStream."""
    return account.runtime.invoke_endpoint_with_response_stream(
        EndpointName=endpoint, Body=json.dumps(inputs), ContentType="application/json", **more
    )


def parts(answer: Any) -> Iterator[bytes]:
    return (event["PayloadPart"]["Bytes"] for event in answer["Body"])


def texts(body: bytes) -> list[str]:
    """TEXT, or the error, of each event."""
    events = [json.loads(event.removeprefix(b"data: ")) for event in body.split(b"\n\n") if event]
    return [event.get("TEXT") or event["error"] for event in events]


def whole(account: StreamingAccount, endpoint: str, inputs: dict[str, Any]) -> tuple[str, bytes]:
    """Content type and body of InvokeEndpoint."""
    answer = account.runtime.invoke_endpoint(
        EndpointName=endpoint, Body=json.dumps(inputs), ContentType="application/json"
    )
    return answer["ContentType"], answer["Body"].read()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return condition()


def test_the_first_part_is_here_before_the_last_is_made(account: StreamingAccount) -> None:
    gate = account.gate("first")
    answer = sent(account, account.endpoint(), {"PROMPT": "hi", "COUNT": 3, "GATE": str(gate)})
    assert answer["ContentType"].startswith("text/event-stream")
    assert answer["InvokedProductionVariant"] == "AllTraffic"
    received = parts(answer)
    assert texts(next(received)) == ["hi 0"]
    gate.touch()
    assert texts(b"".join(received)) == ["hi 1", "hi 2"]


def test_invoke_endpoint_returns_the_whole_text_of_events(account: StreamingAccount) -> None:
    content_type, body = whole(account, account.endpoint(), {"PROMPT": "hi", "COUNT": 3})
    assert content_type.startswith("text/event-stream")
    assert texts(body) == ["hi 0", "hi 1", "hi 2"]


def test_generate_answers_with_one_object_and_counts_an_error_as_a_success(account: StreamingAccount) -> None:
    endpoint = account.endpoint("generate")
    assert json.loads(whole(account, endpoint, {"PROMPT": "hi", "COUNT": 1})[1])["TEXT"] == "hi 0"
    assert json.loads(whole(account, endpoint, {"PROMPT": "hi", "COUNT": 3})[1]) == {
        "error": "generate expects model to produce exactly 1 response, use generate stream for model that generates "
        "various number of responses"
    }


@pytest.mark.parametrize("inference_type", ["generate", "generate_stream"])
def test_an_early_error_has_the_status_of_the_container(account: StreamingAccount, inference_type: str) -> None:
    with pytest.raises(ClientError) as caught:
        sent(account, account.endpoint(inference_type), {})
    assert caught.value.response["Error"]["Code"] == "ModelError"
    assert caught.value.response["OriginalStatusCode"] == 400  # type: ignore[typeddict-item]  # of SageMaker alone
    assert "missing required input(s) ['PROMPT']" in str(caught.value)


HALF = """
backend: "python"
input { name: "READ" data_type: TYPE_FP16 dims: [ 1 ] optional: true }
input { name: "OTHER" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
output { name: "WRITTEN" data_type: TYPE_FP16 dims: [ 1 ] }
"""
HALVER = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("WRITTEN", np.zeros(1, np.float16))]) for _ in requests]
"""


def test_half_precision_fails_as_ct658_says(account: StreamingAccount) -> None:
    account.archive("half", HALF, HALVER)
    endpoint = account.endpoint("generate", model="half")
    with pytest.raises(ClientError, match="receiving FP16 data via JSON is not supported"):
        whole(account, endpoint, {"READ": 1.0})
    with pytest.raises(ClientError, match="sending FP16 data via JSON is not supported"):
        whole(account, endpoint, {"OTHER": 1.0})


NAMES = """
backend: "python"
INPUT
output { name: "model_name" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "model_version" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "id" data_type: TYPE_STRING dims: [ 1 ] }
"""
NAMER = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(each.inputs()[0].as_numpy()[0]) for each in requests]

    def answer(self, value):
        value = np.array([f"of the model {value}".encode()], object)
        return pb.InferenceResponse([pb.Tensor(name, value) for name in ("model_name", "model_version", "id")])
"""


def test_the_protocol_takes_the_names_that_ct662_lists(account: StreamingAccount) -> None:
    for name in ("parameters", "id"):
        tensor = f'input {{ name: "{name}" data_type: TYPE_INT32 dims: [ 1 ] }}'
        account.archive(f"takes-{name}", NAMES.replace("INPUT", tensor), NAMER)
    rejects, answers = (account.endpoint("generate", model=f"takes-{name}") for name in ("parameters", "id"))
    sent_as: list[dict[str, Any]] = [{"parameters": 5}, {"parameters": {"parameters": 5}}]
    for request in sent_as:
        with pytest.raises(ClientError, match="Keyword 'parameters' for nested schema also given as input tensor name"):
            whole(account, rejects, request)
    found = json.loads(whole(account, answers, {"parameters": {"id": 5}})[1])
    assert found == {"id": "of the model 5", "model_name": "generator", "model_version": "1"}
    # CT662 does not report `id`, and the client does not send these requests.
    for request, words in (({"id": 5}, "Unable to parse 'id'"), ({"id": "r"}, "Unable to parse 'data'")):
        with pytest.raises(ClientError, match=words):
            whole(account, answers, request)


def test_an_infer_endpoint_streams_its_one_body(account: StreamingAccount) -> None:
    tensor = {"name": "PROMPT", "shape": [1], "datatype": "BYTES", "data": ["hi"]}
    body = b"".join(parts(sent(account, account.endpoint("infer", model="one"), {"inputs": [tensor]})))
    assert json.loads(body)["outputs"][0]["data"] == ["hi"]


def test_a_release_before_25_03_ignores_the_variable(account: StreamingAccount) -> None:
    with pytest.raises(ClientError, match=r"501.*decoupled transaction policy"):
        sent(account, account.endpoint(release="24.09"), {"PROMPT": "hi"})


def test_a_multi_model_endpoint_does_not_stream(account: StreamingAccount) -> None:
    with pytest.raises(ClientError, match="missing a target model header"):
        sent(account, account.fleet(), {"PROMPT": "hi"})


def test_a_component_streams(account: StreamingAccount) -> None:
    endpoint, component = account.component()
    answer = sent(account, endpoint, {"PROMPT": "hi"}, InferenceComponentName=component)
    assert texts(b"".join(parts(answer))) == ["hi 0", "hi 1", "hi 2"]


def test_a_caller_that_hangs_up_ends_the_request_in_the_server(account: StreamingAccount) -> None:
    gate = account.gate("cancelled")
    answer = sent(account, account.endpoint(), {"PROMPT": "x" * 100_000, "COUNT": 100_000})
    threads = threading.active_count()
    next(parts(answer))
    answer["Body"].close()
    assert eventually(lambda: threading.active_count() < threads)
    silent = sent(account, account.endpoint(), {"PROMPT": "hi", "COUNT": 9, "GATE": str(gate)})
    assert texts(next(parts(silent))) == ["hi 0"]  # the server goes on with other requests
    gate.touch()
    silent["Body"].close()


@pytest.mark.slow
def test_a_hundred_callers_each_get_their_own_parts(account: StreamingAccount) -> None:
    endpoint, gates = account.endpoint(), [account.gate(f"hundred{number}") for number in range(100)]
    started = threading.Barrier(101, timeout=60)

    def call(number: int) -> list[str]:
        inputs = {"PROMPT": f"caller{number}", "COUNT": 5, "GATE": str(gates[number])}
        received = parts(sent(account, endpoint, inputs))
        first = next(received)
        started.wait()  # a hundred streams are open at a time
        return texts(first + b"".join(received))

    with ThreadPoolExecutor(100) as pool:
        answers = [pool.submit(call, number) for number in range(100)]
        started.wait()
        for number, answer in enumerate(answers):  # the server loses events if hundreds of them come at once
            for gate in gates[number : number + 10]:
                gate.touch()
            assert answer.result(60) == [f"caller{number} {part}" for part in range(5)]


@pytest.mark.slow
def test_a_server_that_dies_breaks_the_stream_and_comes_back(account: StreamingAccount) -> None:
    endpoint, gates = account.endpoint(), {prompt: account.gate(prompt) for prompt in ("other", "die")}
    answers = [sent(account, endpoint, {"PROMPT": prompt, "GATE": str(gate)}) for prompt, gate in gates.items()]
    received = [parts(answer) for answer in answers]
    assert [texts(next(each)) for each in received] == [["other 0"], ["die 0"]]
    gates["die"].touch()
    for answer, rest in zip(answers, received, strict=True):
        with pytest.raises(EventStreamError, match=r"ModelStreamError.*closed before the end of the response"):
            list(rest)
        answer["Body"].close()
    assert texts(whole(account, endpoint, {"PROMPT": "back", "COUNT": 1})[1]) == ["back 0"]


def test_no_stream_leaves_a_connection_behind(account: StreamingAccount) -> None:
    endpoint = account.endpoint()
    whole(account, endpoint, {"PROMPT": "hi"})
    before = len(psutil.Process().net_connections())
    for _ in range(20):
        list(parts(sent(account, endpoint, {"PROMPT": "hi"})))
        answer = sent(account, endpoint, {"PROMPT": "hi"})
        next(parts(answer))
        answer["Body"].close()
    assert eventually(lambda: len(psutil.Process().net_connections()) <= before + 1)
