"""Puts load on an endpoint at one rate: sends each request at its time, without waiting for earlier answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.cli.progress import Progress

__all__ = ["MAX_UNDER_WAY", "Send", "Streamed", "load"]


class Streamed(NamedTuple):
    """A good answer that was streamed.

    Attributes:
        moments: when each result arrived, on the clock of `time.perf_counter`.
    """

    moments: Sequence[float]


Send = Callable[[], Awaitable[str | Streamed]]
"""Sends a request, and gives the code of the error; "" for a good answer, or a `Streamed` one."""

MAX_UNDER_WAY = 2000
"""Requests without an answer. One more is dropped, and counts as failed: a real caller would have given up,
and the memory of this machine ends."""

_BREATH = 64
"""Requests that are sent one after the other before answers are looked at, where the generator is behind."""


async def load(
    send: Send,
    times: npt.NDArray[np.float64],
    rate: float,
    seconds: float,
    stop: asyncio.Event,
    progress: Progress,
) -> Measurement:
    """Send at these times, and wait for the answers.

    Args:
        send: sends one request.
        times: when, in seconds from now.
        rate: the rate of these times, for the result.
        seconds: the duration of the load.
        stop: ends it early; what was measured until then is the result.
        progress: shows for how many answers it waits.
    """
    result = Measurement(rate)
    under_way: set[asyncio.Task[None]] = set()
    processor, start = time.process_time(), time.perf_counter()
    for number, offset in enumerate(times.tolist()):
        intended = start + offset
        await _until(intended, stop, breathe=number % _BREATH == 0)
        if stop.is_set():
            break
        now = time.perf_counter()
        result.planned += 1
        result.lateness.record_value(max(int((now - intended) * 1e6), 1))
        if len(under_way) >= MAX_UNDER_WAY:
            result.dropped += 1
            continue
        task = asyncio.create_task(_one(send, start, intended, result))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    if not stop.is_set():
        await _until(start + seconds, stop, breathe=False)
    result.is_interrupted = stop.is_set()
    result.seconds = min(time.perf_counter() - start, seconds)
    result.busy = (time.process_time() - processor) / max(time.perf_counter() - start, 1e-9)
    await _wait_for_answers(under_way, stop, progress)
    return result


async def _until(moment: float, stop: asyncio.Event, *, breathe: bool) -> None:
    left = moment - time.perf_counter()
    if left > 0:
        try:
            await asyncio.wait_for(stop.wait(), left) if left > 1 else await asyncio.sleep(left)
        except TimeoutError:
            return
    elif breathe:
        await asyncio.sleep(0)


async def _one(send: Send, start: float, intended: float, result: Measurement) -> None:
    answer = await send()
    now = time.perf_counter()
    if isinstance(answer, str) and answer:
        result.errors[answer] += 1
    else:
        if isinstance(answer, Streamed):
            result.add_stream(intended, answer.moments)
        result.latency.record_value(max(int((now - intended) * 1e6), 1))
        result.last_answer = now - start


async def _wait_for_answers(under_way: set[asyncio.Task[None]], stop: asyncio.Event, progress: Progress) -> None:
    """Each request has a time limit of its own."""
    while under_way and not stop.is_set():
        progress.say(f"waiting for {len(under_way):,} answers")
        await asyncio.wait(under_way, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
    for task in list(under_way):
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
