"""Several callers at once, one call at a time: who goes on is decided by the test, so that a run can be repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["Turns"]


class Turns:
    """Lets callers run in threads of which only one goes on at any time; `pause` is where another may."""

    def __init__(self) -> None:
        self._main = threading.Semaphore(0)
        self._own = threading.local()

    def pause(self) -> None:
        """Give the turn back, and go on when it comes again; nothing outside of `run`."""
        turn: threading.Semaphore | None = getattr(self._own, "turn", None)
        if turn is not None:
            self._main.release()
            turn.acquire()

    def run(self, callers: Sequence[Callable[[], Any]], order: Iterator[int]) -> list[Any]:
        """What the callers returned; `order` says whose turn it is, among those that have not ended."""
        results: list[Any] = [None] * len(callers)
        turns = [threading.Semaphore(0) for _ in callers]
        alive = list(range(len(callers)))

        def start(number: int) -> None:
            self._own.turn = turns[number]
            turns[number].acquire()
            try:
                results[number] = callers[number]()
            except BaseException as error:
                results[number] = error
            alive.remove(number)
            self._main.release()

        threads = [threading.Thread(target=start, args=(number,)) for number in alive]
        for thread in threads:
            thread.start()
        while alive:
            turns[alive[next(order, 0) % len(alive)]].release()
            self._main.acquire()
        for thread in threads:
            thread.join()
        return results
