"""The queue of one asynchronous endpoint, and the requests in it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cdk_triton_local.endpoints.hosting import AsyncConfig, Invocation

__all__ = ["AsyncQueue", "AsyncRequest"]

CONCURRENCY: Final = 4
"""Requests that an instance gets at a time, if the configuration does not set it; SageMaker "chooses an optimal value".
"""

_TICK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class AsyncRequest:
    """A request that was accepted.

    Attributes:
        invocation: what the container gets; its body is empty if the request is in S3.
        inference_id: its identifier.
        source: the S3 URI of the request; None: the body came with the call.
        output: the S3 URI of the answer.
        failure: the S3 URI of the error message, if the configuration has a path for it.
        queue_seconds: how long it may wait.
        received: when it came, in seconds since 1970.
    """

    invocation: Invocation
    inference_id: str
    source: str | None
    output: str
    failure: str | None
    queue_seconds: float
    received: float


class AsyncQueue:
    """Starts the requests of one endpoint, as many at a time as its instances take.

    Args:
        name: the endpoint's name.
        config: its configuration.
        instances: how many instances the endpoint has at the moment.
        process: answers one request; runs in a thread of its own.
        record: gets the metrics of the queue: name and value.
        now: returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        name: str,
        config: AsyncConfig,
        instances: Callable[[], int],
        process: Callable[[AsyncRequest, AsyncConfig], None],
        record: Callable[[str, float], None],
        now: Callable[[], float],
    ) -> None:
        self._now = now
        self.config = config
        self._name = name
        self._instances = instances
        self._process = process
        self._record = record
        self._waiting: deque[AsyncRequest] = deque()
        self._running = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"queue of {name}", daemon=True)
        self._thread.start()

    def add(self, request: AsyncRequest) -> None:
        """Put a request at the end of the queue."""
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()

    def report(self) -> None:
        """Record the metrics of this moment."""
        with self._changed:
            instances, backlog = self._instances(), len(self._waiting) + self._running
            oldest = max((self.waited(each) for each in self._waiting), default=0.0)
        self._record("ApproximateBacklogSize", backlog)
        self._record("ApproximateAgeOfOldestRequest", oldest)
        self._record("ApproximateBacklogSizePerInstance", backlog / max(instances, 1))
        self._record("HasBacklogWithoutCapacity", float(backlog > 0 and instances == 0))

    def waited(self, request: AsyncRequest) -> float:
        """The seconds since a request was received."""
        return self._now() - request.received

    def close(self) -> None:
        """Drop waiting requests. The host does not wait for running ones."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                started = self._start_next(self._instances())
                if not started:
                    self._changed.wait(_TICK_SECONDS)  # an instance may come, or a request expire, without a notice

    def _start_next(self, instances: int) -> bool:
        """An expired request starts even if all places are occupied. Return False if none can start."""
        places = instances * (self.config.concurrency or CONCURRENCY)
        expired = next((each for each in self._waiting if self.waited(each) > each.queue_seconds), None)
        if expired is None and (not self._waiting or self._running >= places):
            return False
        request = expired or self._waiting[0]
        self._waiting.remove(request)
        self._running += 1
        threading.Thread(target=self._answer, args=(request,), name=f"request of {self._name}", daemon=True).start()
        return True

    def _answer(self, request: AsyncRequest) -> None:
        try:
            self._process(request, self.config)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
