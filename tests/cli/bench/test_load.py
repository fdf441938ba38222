"""The load of `bench`: when requests leave, what is counted, and what the sample is large enough for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from cdk_triton.cli.bench.arrivals import send_times
from cdk_triton.cli.bench.kinds import Arrivals
from cdk_triton.cli.bench.load import load
from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.cli.bench.sweep import ends_sweep, knee, rates
from cdk_triton.cli.progress import Progress


def measured(
    rate: float,
    milliseconds: float,
    *,
    count: int = 1000,
    failed: int = 0,
    late: float = 0,
    is_interrupted: bool = False,
) -> Measurement:
    """A rate that was held for as long as so many requests take."""
    result = Measurement(rate, seconds=count / rate, planned=count, is_interrupted=is_interrupted)
    for _ in range(count - failed):
        result.latency.record_value(int(milliseconds * 1000))
    if failed:
        result.errors["ThrottlingException"] = failed
    for _ in range(count):
        result.lateness.record_value(max(int(late * 1000), 1))
    return result


def run(send: Callable[[], Awaitable[str]], rate: float, seconds: float) -> Measurement:
    async def main() -> Measurement:
        times = send_times(rate, seconds, Arrivals.CONSTANT, 0)
        return await load(send, times, rate, seconds, asyncio.Event(), Progress())

    return asyncio.run(main())


def test_the_same_seed_sends_at_the_same_times() -> None:
    first = send_times(100, 50, Arrivals.POISSON, 7)

    assert np.array_equal(first, send_times(100, 50, Arrivals.POISSON, 7))
    assert not np.array_equal(first[:100], send_times(100, 50, Arrivals.POISSON, 8)[:100])
    assert len(first) == pytest.approx(5000, rel=0.05)
    assert np.all(np.diff(first) > 0)
    assert first[-1] < 50
    gaps = np.diff(first)
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.1)  # as an exponential distribution has it


def test_a_constant_rate_has_equal_distances() -> None:
    assert send_times(4, 1, Arrivals.CONSTANT, 0).tolist() == [0, 0.25, 0.5, 0.75]


def test_latency_counts_from_the_intended_time() -> None:
    """A stall of the whole generator is part of the latency of the requests that it held up."""
    calls = 0

    async def stalls_once() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            time.sleep(0.3)  # the event loop stands still, as it does when the machine is too slow
        return ""

    found = run(stalls_once, 100, 0.5)

    assert found.answered == 50
    # Thirty requests were due during the stall: the last of them waited no time, the first nearly all of it.
    assert found.latency.get_value_at_percentile(90) > 150_000
    assert found.bottleneck


def test_a_slow_endpoint_does_not_slow_the_load() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.2)
        return ""

    found = run(slow, 100, 0.3)

    assert (found.planned, found.answered) == (30, 30)
    assert found.achieved < 80  # the last answer comes 0.2 s after the last request


def test_errors_are_counted_by_their_code_and_not_as_answers() -> None:
    codes = iter(["", "ThrottlingException", "ModelError 500", "ThrottlingException"])

    async def fails() -> str:
        return next(codes)

    found = run(fails, 40, 0.1)

    assert (found.answered, found.planned) == (1, 4)
    assert found.errors == {"ThrottlingException": 2, "ModelError 500": 1}
    assert found.failed_share == 0.75


def test_what_is_too_much_is_dropped_and_counts_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.cli.bench.load.MAX_UNDER_WAY", 5)

    async def slow() -> str:
        await asyncio.sleep(0.3)
        return ""

    found = run(slow, 100, 0.1)

    assert (found.answered, found.dropped, found.failed_share) == (5, 5, 0.5)


def test_a_load_that_is_stopped_gives_what_it_has() -> None:
    stop = asyncio.Event()
    calls = 0

    async def stops() -> str:
        nonlocal calls
        calls += 1
        if calls == 5:
            stop.set()
        return ""

    async def main() -> Measurement:
        return await load(stops, send_times(50, 60, Arrivals.CONSTANT, 0), 50, 60, stop, Progress())

    found = asyncio.run(main())

    assert found.is_interrupted
    assert found.answered >= 5  # more if the generator was behind, and had sent several at once
    assert found.seconds < 5


@pytest.mark.parametrize(
    ("count", "percentiles"),
    [(19, []), (20, [50]), (100, [50, 90]), (999, [50, 90]), (1000, [50, 90, 99]), (10_000, [50, 90, 99, 99.9])],
)
def test_a_percentile_needs_ten_slower_answers(count: int, percentiles: list[float]) -> None:
    found = measured(100, 5, count=count)

    assert list(found.percentiles) == percentiles
    assert list(found.as_json()["latency_ms"]) == [f"p{each:g}" for each in percentiles]


def test_the_next_percentile_is_named_with_the_answers_that_it_needs() -> None:
    assert measured(100, 5, count=19).next_percentile == (50, 20)
    assert measured(100, 5, count=100).next_percentile == (99, 1000)
    assert measured(100, 5, count=1000).next_percentile is None


def test_a_sweep_ends_at_one_percent_of_errors() -> None:
    assert ends_sweep(measured(10, 5, failed=9)) == ""
    assert ends_sweep(measured(10, 5, failed=10)) == "1.0% of the requests failed"


def test_a_sweep_ends_where_this_machine_is_the_bottleneck() -> None:
    assert ends_sweep(measured(10, 5, late=50)) == (
        "this machine is the bottleneck: bench sent 1% of the requests over 50 ms too late, with 0% of a processor"
    )
    busy = measured(10, 5)
    busy.busy = 0.95
    assert ends_sweep(busy) == "this machine is the bottleneck: bench used 95% of a processor"


@pytest.mark.parametrize(("late", "is_bottleneck"), [(10, False), (11, True)])
def test_ten_late_requests_say_nothing_about_this_machine(late: int, is_bottleneck: bool) -> None:
    few = measured(10, 5, count=100 - late)
    for _ in range(late):
        few.lateness.record_value(50_000)

    assert bool(few.bottleneck) == is_bottleneck
    assert few.as_json()["generator"]["late_ms_p99"] is None


def test_a_sweep_ends_where_answers_fall_behind() -> None:
    behind = measured(10, 5)
    behind.last_answer = 2 * behind.seconds

    assert ends_sweep(behind) == "answers fall behind requests"


def test_the_rates_of_a_sweep_reach_from_the_lowest_to_the_highest() -> None:
    found = rates(8, 20)

    assert (found[0], found[-1]) == (8, 20)
    assert found == sorted(set(found))


def test_the_knee_is_the_highest_rate_before_latency_doubles() -> None:
    sweep = [measured(10, 5), measured(20, 6), measured(30, 9), measured(40, 30)]

    found = knee(sweep)

    assert found is not None
    assert found.rate == 30


@pytest.mark.parametrize(
    "sweep",
    [
        [measured(10, 5), measured(20, 5)],
        [measured(10, 5, failed=100)],
        [measured(10, 5), measured(20, 5, late=100)],
        [measured(10, 5, count=10), measured(20, 50, count=10)],
        [measured(10, 5), measured(20, 5, is_interrupted=True)],
    ],
    ids=["never reached", "beyond it at once", "the generator ends first", "too few answers", "interrupted"],
)
def test_a_knee_that_was_not_seen_is_not_named(sweep: list[Measurement]) -> None:
    assert knee(sweep) is None
