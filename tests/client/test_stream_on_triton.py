"""Streams of a real tritonserver behind the local AWS, with both clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

from cdk_triton.client import AsyncTritonClient, InferenceResult, TritonClient
from cdk_triton.errors import ConfigurationError, InvocationError, ModelError
from streaming_account import StreamingAccount, streaming_account

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamingAccount]:
    with streaming_account(tmp_path_factory.mktemp("streams")) as account:
        yield account


@pytest.fixture(autouse=True)
def _at_the_account(account: StreamingAccount, environment: pytest.MonkeyPatch) -> None:
    for name, value in account.aws.environment().items():
        environment.setenv(name, value)


def words(results: list[InferenceResult]) -> list[str]:
    return [result["TEXT"][0].decode() for result in results]


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return condition()


def test_the_first_result_is_here_before_the_last_is_made(account: StreamingAccount) -> None:
    gate = account.gate("client")
    inputs = {"PROMPT": "hi", "COUNT": np.int32(3), "GATE": str(gate)}
    results = TritonClient(account.endpoint()).stream(inputs, request_id="r-1")
    first = next(results)
    assert (words([first]), first.request_id, results.variant) == (["hi 0"], "r-1", "AllTraffic")
    gate.touch()
    assert words(list(results)) == ["hi 1", "hi 2"]


@pytest.mark.parametrize(("inference_type", "count"), [("generate", 1), ("generate_stream", 1)])
def test_generate_works_with_either_type(account: StreamingAccount, inference_type: str, count: int) -> None:
    client = TritonClient(account.endpoint(inference_type))
    assert words([client.generate({"PROMPT": "hi", "COUNT": count})]) == ["hi 0"]
    assert words(list(client.stream({"PROMPT": "hi", "COUNT": count}))) == ["hi 0"]


def test_several_results_are_an_error_of_generate(account: StreamingAccount, messages: Messages) -> None:
    inputs = {"PROMPT": "hi", "COUNT": 2}
    with messages.raises(ModelError) as caught:
        TritonClient(account.endpoint("generate")).generate(inputs)
    assert caught.value.status == 200
    with messages.raises(InvocationError):
        TritonClient(account.endpoint()).generate(inputs)


def test_an_error_of_the_model_comes_after_its_results(account: StreamingAccount) -> None:
    results = TritonClient(account.endpoint()).stream({"PROMPT": "hi", "FAIL_AFTER": 2})
    assert words([next(results), next(results)]) == ["hi 0", "hi 1"]
    with pytest.raises(ModelError, match="out of words"):
        next(results)


def test_an_error_of_the_model_instead_of_its_first_result(account: StreamingAccount) -> None:
    with pytest.raises(ModelError, match=r"the model container answered 400: out of words;") as caught:
        TritonClient(account.endpoint()).stream({"PROMPT": "hi", "FAIL_AFTER": 0})
    assert (caught.value.status, caught.value.original_message) == (400, "out of words")


def test_the_other_protocol_is_named(account: StreamingAccount) -> None:
    text = {"PROMPT": np.array(["hi"], object)}
    for binary in (True, False):
        with pytest.raises(ModelError, match=r"call generate\(\) or stream\(\) instead"):
            TritonClient(account.endpoint()).infer(text, binary=binary)
    with pytest.raises(ModelError, match=r"call infer\(\) instead"):
        TritonClient(account.endpoint("infer", model="one")).stream(text)


def test_a_component_streams(account: StreamingAccount) -> None:
    endpoint, component = account.component()
    results = TritonClient(endpoint).stream({"PROMPT": "hi"}, inference_component=component)
    assert words(list(results)) == ["hi 0", "hi 1", "hi 2"]


def test_a_repository_gives_types_and_checks_shapes(account: StreamingAccount, messages: Messages) -> None:
    client = TritonClient(account.endpoint()).for_repository(account.repository())
    for result in client.stream({"PROMPT": ["hi"], "COUNT": [2]}):
        assert result["SCORES"].dtype == np.float32
        assert result.datatypes == {"SCORES": "FP32", "TEXT": "BYTES"}
    assert words([client.generate({"PROMPT": ["hi"], "COUNT": np.array([1], np.int32)})]) == ["hi 0"]
    with pytest.raises(ConfigurationError, match="does not have the input 'PROMT'"):
        client.stream({"PROMT": ["hi"]})
    with messages.raises(ConfigurationError):
        TritonClient("fleet").for_repository(account.repository(), ensemble="text").stream({"PROMPT": ["hi"]})


SUMS = """
backend: "python"
input { name: "x" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_INT32 dims: [ 1 ] }
sequence_batching { }
"""
SUM = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(each, "x").as_numpy() for each in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in inputs]
"""


def test_a_sequence_cannot_be_named_as_ct661_says(account: StreamingAccount) -> None:
    account.archive("sums", SUMS, SUM)
    client = TritonClient(account.endpoint("generate", model="sums"))
    for named in ({}, {"sequence_id": 5, "sequence_start": True}):
        with pytest.raises(ModelError, match="must specify a non-zero or non-empty correlation ID"):
            client.generate({"x": 1, **named})


SHAPES = """
backend: "python"
max_batch_size: 8
input { name: "FIXED" data_type: TYPE_FP32 dims: [ 2, 3 ] optional: true }
input { name: "OPEN" data_type: TYPE_FP32 dims: [ -1 ] optional: true }
input { name: "TWO" data_type: TYPE_FP32 dims: [ -1, -1 ] optional: true }
output { name: "SHAPES" data_type: TYPE_STRING dims: [ 1 ] }
"""
SHAPER = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.shape(request) for request in requests]

    def shape(self, request):
        [found] = [list(tensor.as_numpy().shape) for tensor in request.inputs()]
        rows = [[str(found).encode()]] * found[0]
        return pb.InferenceResponse([pb.Tensor("SHAPES", np.array(rows, object))])
"""


def test_the_server_makes_the_shapes_that_the_client_expects(
    account: StreamingAccount, tmp_path: Path, messages: Messages
) -> None:
    account.archive("shapes", SHAPES, SHAPER, tmp_path / "shapes")
    client = TritonClient(account.endpoint("generate", model="shapes")).for_repository(tmp_path / "shapes")

    def shape(name: str, *sizes: int) -> str:
        result = client.generate({name: np.zeros(sizes, np.float32)})
        text: bytes = result["SHAPES"][0]
        return text.decode()

    assert shape("FIXED", 3, 2, 3) == "[3, 2, 3]"
    assert shape("FIXED", 2, 3) == "[1, 2, 3]"
    assert shape("FIXED", 18) == "[3, 2, 3]"
    assert shape("OPEN", 5) == "[1, 5]"
    assert shape("TWO", 1, 7) == "[1, 1, 7]"
    assert shape("TWO", 7) == "[1, 1, 7]"
    for name, sizes in {"OPEN": (2, 5), "TWO": (2, 3)}.items():
        with messages.raises(ConfigurationError):
            shape(name, *sizes)


@pytest.mark.slow
def test_a_hundred_streams_of_which_one_is_killed_in_the_middle(account: StreamingAccount) -> None:
    gate = account.gate("many")
    count = 2  # a result and the end of each stream come at once, and the server loses some of more than 278

    async def read(client: AsyncTritonClient, number: int, first: asyncio.Event) -> list[str]:
        inputs = {"PROMPT": f"caller{number}", "COUNT": count, "GATE": str(gate)}
        async with await client.stream(inputs) as results:
            received = [await anext(results)]
            first.set()
            received += [result async for result in results]
        return words(received)

    async def main() -> None:
        async with AsyncTritonClient(account.endpoint(), concurrency=100) as client:
            started = [asyncio.Event() for _ in range(100)]
            tasks = [asyncio.create_task(read(client, number, started[number])) for number in range(100)]
            await asyncio.wait_for(asyncio.gather(*(each.wait() for each in started)), 60)
            tasks[50].cancel()
            await asyncio.wait([tasks[50]])
            gate.touch()
            for number, task in enumerate(tasks):
                if number == 50:
                    assert task.cancelled()
                else:
                    assert await task == [f"caller{number} {part}" for part in range(count)]

    asyncio.run(main())


@pytest.mark.slow
def test_a_request_of_six_megabytes_is_streamed_back(account: StreamingAccount) -> None:
    inputs = {"PROMPT": "x" * 6_291_000, "COUNT": 2}  # with the rest of the JSON just below SageMaker's limit
    for number, text in enumerate(words(list(TritonClient(account.endpoint()).stream(inputs)))):
        assert text == f"{inputs['PROMPT']} {number}"


@pytest.mark.slow
def test_a_slow_reader_holds_up_nobody_and_loses_nothing(account: StreamingAccount) -> None:
    client = TritonClient(account.endpoint())
    slow = client.stream({"PROMPT": "x" * 50_000, "COUNT": 400})  # 20 MB, more than any buffer on the way
    next(slow)
    assert words(list(client.stream({"PROMPT": "other"}))) == ["other 0", "other 1", "other 2"]
    assert [text.rpartition(" ")[2] for text in words(list(slow))] == [str(number) for number in range(1, 400)]


def test_a_server_that_is_killed_is_an_error_and_nothing_leaks(account: StreamingAccount) -> None:
    client = TritonClient(account.endpoint())
    list(client.stream({"PROMPT": "hi"}))
    before = len(psutil.Process().net_connections())
    for number in range(2):
        gate = account.gate(f"die{number}")
        results = client.stream({"PROMPT": "die", "GATE": str(gate)})
        assert words([next(results)]) == ["die 0"]
        gate.touch()
        with pytest.raises(ModelError, match=r"after 1 result: the model container broke its answer off"):
            list(results)
    assert words(list(client.stream({"PROMPT": "back", "COUNT": 1}))) == ["back 0"]
    assert eventually(lambda: len(psutil.Process().net_connections()) <= before + 1)


@pytest.mark.parametrize("inputs", [{}, {"PROMPT": 5}, {"PROMPT": ["a", "b"]}, {"PROMPT": "a", "COUNT": 1.5}])
def test_a_request_that_the_server_rejects_is_a_model_error(account: StreamingAccount, inputs: Any) -> None:
    with pytest.raises(ModelError) as caught:
        TritonClient(account.endpoint()).stream(inputs)
    assert caught.value.status in (400, 500)
    assert "Traceback" not in str(caught.value)
