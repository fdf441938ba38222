"""The clock of the local AWS."""

from __future__ import annotations

import threading

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local import Clock
from cdk_triton_local.clock import Waits


def test_what_waits_continues_in_the_order_of_its_times() -> None:
    clock, happened = Clock(only_moved=True), list[tuple[str, float]]()
    since = clock.now

    def wait(name: str, *seconds: float) -> Waits:
        for each in seconds:
            yield each
            happened.append((name, round(clock.now - since)))

    clock.start(wait("a", 10, 20))
    clock.start(wait("b", 20, 5))
    clock.advance(26)

    assert happened == [("a", 10), ("b", 20), ("b", 25)]
    assert round(clock.now - since) == 26


def test_a_clock_hurries_while_something_urgent_waits() -> None:
    clock = Clock()

    def wait() -> Waits:
        yield 300  # five seconds

    clock.open()
    clock.start(wait(), urgent=True).result(timeout=60)
    clock.close()


def test_what_waits_when_the_clock_is_closed_fails() -> None:
    clock, ended = Clock(only_moved=True), threading.Event()

    def wait() -> Waits:
        try:
            yield 10
        finally:
            ended.set()

    begun = clock.start(wait())
    clock.close()

    assert ended.is_set()
    with pytest.raises(LocalError, match="is being stopped"):
        begun.result()


def test_a_clock_that_is_opened_again_does_not_hurry_for_what_waited_before() -> None:
    clock = Clock()

    def wait(seconds: float) -> Waits:
        yield seconds

    clock.start(wait(300), urgent=True)
    clock.close()
    clock.open()
    clock.start(wait(0.01)).result(timeout=60)
    clock.close()

    assert clock.gained == 0


def test_a_clock_that_is_opened_again_goes_on() -> None:
    clock = Clock(only_moved=True)
    clock.open()
    clock.close()
    clock.open()

    def wait() -> Waits:
        yield 10

    ended = clock.start(wait())
    clock.advance(10)
    assert ended.done()
    assert ended.exception() is None
