"""How long a stream and its connection last: results as they arrive, readers that stop, and who may read."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.client.streaming_endpoint import HI, Client, Streaming, event, words

from cdk_triton.client import AsyncResultStream, AsyncTritonClient, TritonClient
from cdk_triton.errors import CdkTritonError, ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages


def test_results_arrive_before_the_answer_ends(streaming: Streaming) -> None:
    streaming.parts = [event("a"), None, event("b")]
    with TritonClient("texts").stream(HI) as results:
        assert results.first_result_seconds is None
        assert next(results)["TEXT"] == [b"a"]
        assert results.first_result_seconds is not None
        assert results.variant == "blue"
        streaming.go_on.set()
        assert words(list(results)) == ["b"]
        assert list(results) == []


def test_results_arrive_before_the_answer_ends_on_an_event_loop(streaming: Streaming) -> None:
    async def main() -> None:
        async with AsyncTritonClient("texts") as client, await client.stream(HI) as results:
            assert (await anext(results))["TEXT"] == [b"a"]
            assert results.first_result_seconds is not None
            streaming.go_on.set()
            assert words([result async for result in results]) == ["b"]

    streaming.parts = [event("a"), None, event("b")]
    asyncio.run(main())


def test_open_streams_do_not_keep_other_requests_waiting(streaming: Streaming) -> None:
    async def main() -> list[str]:
        async with AsyncTritonClient("texts", concurrency=1) as client, await client.stream(HI) as first:
            await anext(first)
            async with await client.stream(HI) as second:
                await anext(second)
                streaming.parts = [event("c")]
                one = await client.generate(HI)
            streaming.go_on.set()
            return words([one, *[result async for result in first]])

    streaming.parts = [event("a"), None, event("b")]
    assert asyncio.run(asyncio.wait_for(main(), 20)) == ["c", "b"]


@pytest.mark.parametrize("how", ["break", "close", "with", "never read"])
def test_a_caller_that_stops_reading_closes_the_connection(streaming: Streaming, how: str) -> None:
    streaming.parts = [event("x" * 100_000)] * 1000
    results = TritonClient("texts").stream(HI)
    kept = [results] if how in ("close", "with") else []  # otherwise nothing refers to the stream any more
    if how == "break":
        for _ in results:
            break
    elif how == "close":
        next(results)
        results.close()
    elif how == "with":
        with results:
            next(results)
    del results
    gc.collect()
    assert streaming.left.wait(20)
    assert [list(each) for each in kept] == [[] for _ in kept]


@pytest.mark.parametrize("how", ["break", "close", "with"])
def test_a_caller_that_stops_reading_closes_the_connection_of_an_event_loop(streaming: Streaming, how: str) -> None:
    async def main() -> None:
        async with AsyncTritonClient("texts") as client:
            results = await client.stream(HI)
            kept = [results] if how in ("close", "with") else []
            if how == "break":
                async for _ in results:
                    break
            elif how == "close":
                await anext(results)
                results.close()
            else:
                async with results:
                    await anext(results)
            del results
            assert await asyncio.to_thread(streaming.left.wait, 20)
            assert [[result async for result in each] for each in kept] == [[] for _ in kept]

    streaming.parts = [event("x" * 100_000)] * 1000
    asyncio.run(main())


def test_a_task_that_is_cancelled_closes_the_connection(streaming: Streaming) -> None:
    async def main() -> None:
        reading = asyncio.Event()

        async def read(results: AsyncResultStream) -> None:
            async for _ in results:
                reading.set()

        async with AsyncTritonClient("texts") as client:
            results = await client.stream(HI)
            task = asyncio.create_task(read(results))
            await reading.wait()
            task.cancel()
            await asyncio.wait([task])
            streaming.go_on.set()
            assert await asyncio.to_thread(streaming.left.wait, 20)
            assert [result async for result in results] == []

    streaming.parts = [event("x" * 100_000), None, *[event("x" * 100_000)] * 1000]
    asyncio.run(main())


@pytest.mark.parametrize("how", ["close", "go on"])
def test_a_stream_has_one_reader_whom_close_wakes(streaming: Streaming, how: str, messages: Messages) -> None:
    streaming.parts = [event("a"), None, event("b")]
    results = TritonClient("texts").stream(HI)
    found: list[str] = []
    rejected: list[Exception] = []

    def read() -> None:
        try:
            found.extend(result["TEXT"][0].decode() for result in results)
        except CdkTritonError as error:
            rejected.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + 20
    while not rejected and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    if how == "close":
        results.close()
    else:
        streaming.go_on.set()
    for reader in readers:
        reader.join(20)
        assert not reader.is_alive()
    assert [type(error) for error in rejected] == [ConfigurationError]
    messages.record("ConfigurationError", str(rejected[0]))
    assert found == (["a"] if how == "close" else ["a", "b"])
    assert list(results) == []


@pytest.mark.parametrize("how", ["close", "go on"])
def test_a_stream_of_an_event_loop_has_one_reader_too(streaming: Streaming, how: str) -> None:
    async def main() -> list[str]:
        async with AsyncTritonClient("texts") as client:
            results = await client.stream(HI)
            found = [(await anext(results))["TEXT"][0].decode()]

            async def read() -> None:
                async for result in results:
                    found.append(result["TEXT"][0].decode())

            reader = asyncio.create_task(read())
            await asyncio.sleep(0)
            with pytest.raises(ConfigurationError, match="another thread or task waits"):
                await anext(results)
            if how == "close":
                results.close()
            streaming.go_on.set()
            await asyncio.wait_for(reader, 20)
            return found

    streaming.parts = [event("a"), None, event("b")]
    assert asyncio.run(main()) == (["a"] if how == "close" else ["a", "b"])


def test_reading_a_stream_leaves_no_connection_open(streaming: Streaming, stream: Client) -> None:
    streaming.parts = [event("a")]
    for _ in range(3):
        stream(HI)
    streaming.parts = [event("a"), "cut"]
    with pytest.raises(CdkTritonError):
        stream(HI)
    gc.collect()  # an open socket would be a ResourceWarning, which is an error here
