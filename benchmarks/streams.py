"""How much later than boto3 the client has the first result of a stream, and what each event costs it.

Both sides read the same bytes with boto3's event stream. boto3 alone returns the bytes of the parts, and the client
their events as arrays. They take turns in one process; the server is a process of its own, on the loopback interface.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from _figures import progress, report
from cdk_triton.client import TritonClient
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


def main() -> None:
    """Print the two figures."""
    with endpoint():
        runtime, client = boto3_runtime(), TritonClient("text")

        def by_boto3() -> Iterator[Any]:
            answer = runtime.invoke_endpoint_with_response_stream(
                EndpointName="text", Body=BODY, ContentType="application/json"
            )
            return iter(answer["Body"])

        ways: dict[str, Callable[[], Iterator[Any]]] = {"boto3": by_boto3, "client": lambda: client.stream(INPUTS)}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        progress(f"streams: {ROUNDS} streams each way ...")
        for number in range(WARM_UP + ROUNDS):
            for name, start in list(ways.items())[:: 1 if number % 2 else -1]:
                measured = seconds_of(start)
                if number >= WARM_UP:
                    found[name].append(measured)
    (first, event), (our_first, our_event) = (
        [statistics.median(each) for each in zip(*found[name], strict=True)] for name in ways
    )
    progress(f"streams: first result after {first * 1e3:.2f} ms with boto3, {our_first * 1e3:.2f} ms with the client")
    progress(f"streams: {event * 1e6:.0f} µs of a processor for an event with boto3, {our_event * 1e6:.0f} µs")
    report("streams.first", (our_first - first) * 1e3, "ms after boto3", at_most=1)
    report("streams.event", (our_event - event) * 1e3, "ms of a processor more than boto3", at_most=0.1)


if __name__ == "__main__":
    main()
