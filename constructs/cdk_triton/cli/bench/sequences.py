"""Makes sequences of the requests of a load, for models that keep state between requests.

The requests of one rate are dealt to as many callers as have sequences at the same time. A caller has one request under
way, so one that is due earlier waits, and its latency counts from the time when it was due.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol

from cdk_triton.client.scheduling import SequenceStep

if TYPE_CHECKING:
    from cdk_triton.cli.bench.load import Streamed

__all__ = ["DealtRequests", "SendStep", "Sequences", "new_ids"]

_END_SECONDS = 10.0
"""For the requests that end sequences. The server ends those that are left after `max_sequence_idle_microseconds`."""

_MOST_IDS = 1 << 24
"""More than a load has requests; the identifiers fit into TYPE_INT32, the smallest type that a model can ask for."""


class SendStep(Protocol):
    """Sends a request at its place in a sequence; without one, the request is not a part of a sequence."""

    async def __call__(self, step: SequenceStep | None = None) -> str | Streamed:
        """Return what `Send` returns."""


def new_ids() -> Iterator[int]:
    """Identifiers of sequences. They begin at a random number, because others may use the endpoint."""
    return count(1 + secrets.randbelow((1 << 31) - _MOST_IDS))


@dataclass(frozen=True)
class Sequences:
    """The sequences of a load.

    Attributes:
        length: the number of requests in each.
        interval: seconds between two requests of one, on average.
    """

    length: int
    interval: float

    def at_a_time(self, rate: float) -> int:
        """The number of sequences that a rate of requests per second consists of."""
        return max(round(rate * self.interval), 1)

    def dealt(self, send: SendStep, rate: float, requests: int) -> DealtRequests:
        """A function that sends the next request of the load in the sequence that it belongs to.

        Args:
            send: sends it.
            rate: requests per second.
            requests: the number of requests at this rate. The last sequence of each caller ends with them.
        """
        many, ids = self.at_a_time(rate), new_ids()
        # They begin at different places of a sequence, so that not all sequences start and end at the same time.
        callers = [_Caller(send, self.length, ids.__next__, self.length * number // many) for number in range(many)]
        return DealtRequests(callers, requests)


class DealtRequests:
    """Sends the requests of one rate, each in its sequence.

    Args:
        callers: who has the sequences.
        requests: the number of requests at this rate.
    """

    def __init__(self, callers: Sequence[_Caller], requests: int) -> None:
        self._callers, self._requests = callers, requests
        self._numbers = count()

    async def __call__(self) -> str | Streamed:
        """Send the next request."""
        number, many = next(self._numbers), len(self._callers)
        return await self._callers[number % many].send(is_final=number + many >= self._requests)

    async def end(self) -> None:
        """End the sequences that are open because requests were dropped or the load was interrupted.

        Otherwise, they would take slots of the sequence batcher from those of the next rate.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.gather(*(caller.end() for caller in self._callers))


@dataclass
class _Caller:
    """Sends one request after the other.

    Attributes:
        send_step: sends one.
        length: the number of requests in each sequence.
        new_id: makes the identifier of a sequence.
        place: the number of requests before the next one in its sequence.
    """

    send_step: SendStep
    length: int
    new_id: Callable[[], int]
    place: int

    def __post_init__(self) -> None:
        self._turn = asyncio.Lock()  # who waits for it gets it in order
        self._begin()

    def _begin(self) -> None:
        self._sequence, self._is_started, self._is_open = self.new_id(), False, False

    async def send(self, *, is_final: bool) -> str | Streamed:
        """Send the next request when the earlier ones have ended; the final one ends its sequence early.

        As `TritonClient.sequence` does: if the first request of a sequence failed, the next one starts it.
        """
        async with self._turn:
            self.place += 1
            is_last = is_final or self.place == self.length
            self._is_open = True  # also after a request that is cancelled, which may have reached the model
            answer = await self.send_step(SequenceStep(self._sequence, not self._is_started, is_last))
            self._is_started = self._is_started or not isinstance(answer, str) or not answer
            self._is_open = self._is_started
            if is_last:
                self.place = 0
                self._begin()
            return answer

    async def end(self) -> None:
        """End the sequence if it is open."""
        async with self._turn:
            if self._is_open:
                await self.send_step(SequenceStep(self._sequence, not self._is_started, True))
                self._begin()
