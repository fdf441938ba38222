"""What a client's sequence keeps between its calls, apart from Triton."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.client.parameter_store import Ssm, ssm, until

from cdk_triton.client import AsyncTritonClient, TritonClient
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["ssm"]

X: Any = {"x": np.zeros((1, 2), np.float32)}
CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
sequence_batching { }
"""


def starts(endpoint: Any) -> list[bool]:
    return [header["parameters"]["sequence_start"] for _, _, header in endpoint.requests]


def targets(endpoint: Any) -> list[str]:
    return [headers["x-amzn-sagemaker-target-model"] for _, headers, _ in endpoint.requests]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "1" / "model.py").touch()
    (tmp_path / "model" / "config.pbtxt").write_text(CONFIG)
    return tmp_path


ANSWERS = [
    b'{"outputs": [{"name": "x", "datatype": "FP64", "shape": [1, 2], "data": [1, 2]}]}',  # not that of config.pbtxt
    b"{}",
]


@pytest.mark.parametrize("body", ANSWERS, ids=["another type", "not of Triton"])
def test_an_answer_that_the_client_rejects_does_not_start_the_sequence_again(
    endpoint: Any, answer: Any, repository: Path, body: bytes
) -> None:
    calls = TritonClient("texts", endpoint.runtime()).for_repository(repository).sequence(7)
    endpoint.answer = lambda: answer(body, "application/json")
    with pytest.raises(InvocationError):
        calls.infer(X)
    endpoint.answer = None
    calls.infer(X)
    assert starts(endpoint) == [True, False]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("body", ANSWERS, ids=["another type", "not of Triton"])
def test_an_answer_that_the_client_for_asyncio_rejects_does_not_start_the_sequence_again(
    endpoint: Any, answer: Any, repository: Path, body: bytes
) -> None:
    async def use() -> None:
        async with AsyncTritonClient("texts") as client:
            calls = client.for_repository(repository).sequence(7)
            endpoint.answer = lambda: answer(body, "application/json")
            with pytest.raises(InvocationError):
                await calls.infer(X)
            endpoint.answer = None
            await calls.infer(X)

    asyncio.run(use())
    assert starts(endpoint) == [True, False]


def test_a_call_that_the_model_did_not_answer_is_tried_at_the_same_place(endpoint: Any, answer: Any) -> None:
    calls = TritonClient("texts", endpoint.runtime()).sequence(7)
    endpoint.answer = lambda: answer(b"{}", "application/json", 500)
    with pytest.raises(InvocationError):
        calls.infer(X)
    endpoint.answer = None
    calls.infer(X)
    assert starts(endpoint) == [True, True]


def test_a_sequence_stays_at_its_target_model(endpoint: Any, ssm: Ssm) -> None:
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm, max_age=0)
    calls = client.sequence(7, ensemble="text")
    calls.infer(X)
    ssm.values["target-models/text"] = "text-2.tar.gz"
    client.infer(X, ensemble="text")  # refreshes the name
    until(lambda: True)
    client.infer(X, ensemble="text")
    calls.infer(X, last=True)
    assert targets(endpoint)[-2:] == ["text-2.tar.gz", "text-1.tar.gz"]


@pytest.mark.usefixtures("environment")
def test_a_sequence_of_an_event_loop_stays_at_its_target_model(endpoint: Any, ssm: Ssm) -> None:
    async def use() -> None:
        async with AsyncTritonClient.from_parameters("/search", ssm=ssm, max_age=0) as client:
            calls = client.sequence(7, ensemble="text")
            await calls.infer(X)
            ssm.values["target-models/text"] = "text-2.tar.gz"
            await client.infer(X, ensemble="text")  # refreshes the name
            until(lambda: True)
            await client.infer(X, ensemble="text")
            await calls.infer(X, last=True)

    asyncio.run(use())
    assert targets(endpoint)[-2:] == ["text-2.tar.gz", "text-1.tar.gz"]


@pytest.mark.usefixtures("environment")
def test_calls_of_a_sequence_do_not_overlap(endpoint: Any, messages: Messages) -> None:
    async def use() -> list[Any]:
        async with AsyncTritonClient("texts") as client:
            calls = client.sequence(7)
            found = await asyncio.gather(*(calls.infer(X) for _ in range(3)), return_exceptions=True)
            await calls.infer(X, last=True)
            return found

    _, *others = asyncio.run(use())
    assert [type(each) for each in others] == [ConfigurationError] * 2
    messages.record("ConfigurationError", str(others[0]))
    assert starts(endpoint) == [True, False]


def test_threads_do_not_share_a_sequence(endpoint: Any) -> None:
    answered, asked = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        answered.wait(30)

    endpoint.answer = wait
    calls = TritonClient("texts", endpoint.runtime()).sequence(7)
    failed: list[InvocationError] = []

    def call() -> None:
        try:
            calls.infer(X)
        except InvocationError as error:  # of the answer None, which closes the connection
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert asked.wait(30)
    with pytest.raises(ConfigurationError, match="still under way"):
        calls.infer(X)
    answered.set()
    thread.join()
    assert (len(failed), starts(endpoint)) == (1, [True])
