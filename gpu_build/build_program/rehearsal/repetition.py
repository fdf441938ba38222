"""Repeats golden requests at the stated concurrency, and measures the latency."""

from __future__ import annotations

import json
import math
import threading
import time
from itertools import cycle
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ..stop import Stop
from .document import RequestEntry
from .tensors import BINARY

__all__ = ["Latencies", "repeat"]

_MOST_ANSWERS = 1000
_LOOK_SECONDS = 0.5
_LIST_OFFSET = 1 << 32  # between the numbers that clients give to the same sequence

Ask = Callable[[bytes, str, str], float]
"""Sends a body of a content type under a name, and returns the seconds until the answer."""


class Latencies(NamedTuple):
    """How long the answers took, in seconds, shortest first."""

    concurrency: int
    seconds: Sequence[float]

    def percentile(self, percent: float) -> float:
        """The latency in milliseconds that so many of the answers keep."""
        rank = max(1, math.ceil(len(self.seconds) * percent / 100))
        return round(self.seconds[rank - 1] * 1000, 3)

    def figures(self) -> Mapping[str, Any]:
        """The figures: `concurrency`, `answers`, and the percentiles in milliseconds."""
        found = {f"p{percent}_milliseconds": self.percentile(percent) for percent in (50, 90, 99)}
        return {"concurrency": self.concurrency, "answers": len(self.seconds), **found}


def repeat(requests: Sequence[RequestEntry], ask: Ask, concurrency: int, seconds: float, stop: Stop) -> Latencies:
    """Let clients send the requests one after the other, again and again.

    Args:
        requests: the requests. Each client has its own sequences.
        ask: sends one; called from several threads.
        concurrency: how many clients there are.
        seconds: when they stop, unless there are 1,000 answers earlier. Each has at least one.
        stop: ends the wait for them.

    Raises:
        Exception: `ask` raised it in one of the clients.
        StoppedError: the program has to end.
    """
    ends = time.monotonic() + seconds
    measured: list[float] = []
    raised: list[Exception] = []

    def client(number: int) -> None:
        try:
            for request in cycle(requests):
                body, content_type = _of_client(request, number)
                measured.append(ask(body, content_type, request.name))
                if raised or len(measured) >= _MOST_ANSWERS or time.monotonic() >= ends:
                    return
        except Exception as error:  # raised again below
            raised.append(error)

    clients = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(concurrency)]
    for each in clients:
        each.start()
    for each in clients:
        while each.is_alive():
            each.join(_LOOK_SECONDS)
            stop.check()
    for error in raised:
        raise error
    return Latencies(concurrency, sorted(measured))


def _of_client(request: RequestEntry, client: int) -> tuple[bytes, str]:
    """The body, in which a sequence has the number of a client."""
    body, content_type = request.body.read_bytes(), request.content_type
    if client == 0 or b'"sequence_id"' not in body:
        return body, content_type
    size = int(content_type[len(BINARY) :]) if content_type.startswith(BINARY) else len(body)
    header = json.loads(body[:size].decode("utf-8"))
    parameters = header.get("parameters", {})
    if "sequence_id" not in parameters:  # the words are in a text of the request
        return body, content_type
    given = parameters["sequence_id"]
    parameters["sequence_id"] = f"{given}-{client}" if isinstance(given, str) else given + client * _LIST_OFFSET
    rewritten = json.dumps(header).encode("utf-8")
    return rewritten + body[size:], f"{BINARY}{len(rewritten)}" if content_type.startswith(BINARY) else content_type
