"""How much later than `http.client` the client has the first result of a stream, and what each event costs it.

All sides read the same bytes with boto3's event stream. `http.client`, which signs nothing, and boto3 return the bytes
of the parts, and the client their events as arrays. They take turns in one process; the server is a process of its own,
on the loopback interface.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from botocore.eventstream import EventStreamBuffer

from _figures import progress, report
from cdk_triton.client import TritonClient
from cdk_triton.client.generation import AnswerReader
from client import boto3_runtime, endpoint

ROUNDS = 300
WARM_UP = 20
INPUTS = {"PROMPT": "Once upon a time"}
BODY = json.dumps(INPUTS).encode()


def seconds_of(start: Callable[[], Iterator[Any]]) -> tuple[float, float]:
    """The time to the first item of a stream, and the processor time for each item of the whole stream."""
    began, processor = time.perf_counter(), time.process_time()
    items = start()
    next(items)
    first = time.perf_counter() - began
    count = 1 + sum(1 for _ in items)
    return first, (time.process_time() - processor) / count


def by_http_client(connection: http.client.HTTPConnection) -> Iterator[bytes]:
    """The bytes of each part."""
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/endpoints/text/invocations-response-stream", BODY, headers)
    answer, events = connection.getresponse(), EventStreamBuffer()
    while data := answer.read1():
        events.add_data(data)
        for event in events:
            yield event.payload


def seconds_of_event(size: int) -> float:
    """The processor time to read an event of so many bytes that arrives in parts of 64."""
    whole = b"data: " + json.dumps({"TEXT": "x" * size}).encode() + b"\n\n"
    reader, began = AnswerReader("here", "text/event-stream", None), time.process_time()
    for at in range(0, len(whole), 64):
        for _ in reader.feed(whole[at : at + 64]):
            pass
    return time.process_time() - began


def main() -> None:
    """Print the three figures."""
    with endpoint(), closing(http.client.HTTPConnection(urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc)) as connection:
        runtime, client = boto3_runtime(), TritonClient("text")

        def by_boto3() -> Iterator[Any]:
            answer = runtime.invoke_endpoint_with_response_stream(
                EndpointName="text", Body=BODY, ContentType="application/json"
            )
            return iter(answer["Body"])

        ways: dict[str, Callable[[], Iterator[Any]]] = {
            "http.client": lambda: by_http_client(connection),
            "boto3": by_boto3,
            "the client": lambda: client.stream(INPUTS),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        progress(f"streams: {ROUNDS} streams each way ...")
        for number in range(WARM_UP + ROUNDS):
            for name, start in list(ways.items())[:: 1 if number % 2 else -1]:
                measured = seconds_of(start)
                if number >= WARM_UP:
                    found[name].append(measured)
    medians = {name: [statistics.median(each) for each in zip(*found[name], strict=True)] for name in ways}
    for name, (first, event) in medians.items():
        progress(f"streams: {first * 1e3:.2f} ms to the first, {event * 1e6:.0f} µs of a processor each: {name}")
    first, event = (ours - plain for plain, ours in zip(medians["http.client"], medians["the client"], strict=True))
    report("streams.first", first * 1e3, "ms after http.client", at_most=1)
    report("streams.event", event * 1e3, "ms of a processor more than http.client", at_most=0.1)
    small, large = (min(seconds_of_event(size) for _ in range(3)) for size in (1 << 17, 1 << 20))
    report("streams.large_event", large / small, "times the processor time for 8 times the bytes", at_most=16)


if __name__ == "__main__":
    main()
