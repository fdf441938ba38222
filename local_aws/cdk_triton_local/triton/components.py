"""Runs the copies of inference components, each on a tritonserver of its own."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from cdk_triton.errors import LocalError
from cdk_triton_local.endpoints import Component, Invocation, Variant
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.gateway import Answer
from cdk_triton_local.triton.responses import ErrorResponses
from cdk_triton_local.triton.variant import RetiredError, RunningVariant, VariantSettings

__all__ = ["COMPONENT_HEADER", "ComponentServers"]

_T = TypeVar("_T")

COMPONENT_HEADER: Final = "x-amzn-sagemaker-inference-component"


@dataclass
class _Placed:
    """Requests go to the copies in turn."""

    component: Component
    copies: list[RunningVariant] = field(default_factory=list)
    turns: itertools.count[int] = field(default_factory=itertools.count)


class ComponentServers:
    """Starts, stops and calls the copies of components.

    Args:
        settings: for their servers.
        directory: for unpacked model data.
        logs: `logs/<endpoint>/<component>.log` is the output of the servers of a component.
        errors: makes the error responses of an endpoint.
        record: gets the values of a component's metrics: its name, the metric's, and the value.
    """

    def __init__(
        self,
        settings: VariantSettings,
        directory: Path,
        logs: Path,
        errors: Callable[[str], ErrorResponses],
        record: Callable[[str, str, float], None],
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._logs = logs
        self._errors = errors
        self._record = record
        self._placed: dict[str, _Placed] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards the table; a component is changed by one thread at a time

    def place(self, component: Component, copies: int) -> None:
        """Bring a component to a number of copies; see `EndpointHost.place`."""
        with self._lock:
            placed = self._placed.setdefault(component.name, _Placed(component))
        kept = placed.copies[:copies] if placed.component == component else []
        fresh = self._start_all_or_none(component, copies - len(kept))
        with self._lock:
            closing = self._settings.closing.is_set() or self._placed.get(component.name) is not placed
            ended = fresh if closing else [each for each in placed.copies if each not in kept]
            if not closing:
                placed.component, placed.copies = component, [*kept, *fresh]
        self._stop(ended)
        if closing:
            raise LocalError(f"component {component.name} was not placed, because the local AWS is being stopped")

    def withdraw(self, name: str) -> None:
        """Stop all copies of a component; see `EndpointHost.withdraw`."""
        with self._lock:
            placed = self._placed.pop(name, None)
        self._stop(placed.copies if placed else [])

    def answer(self, invocation: Invocation, errors: ErrorResponses, deadline: Deadline, answered_by: Answer[_T]) -> _T:
        """Have a copy of the component that a request names answer it, as a whole or in parts.

        Raises:
            RejectedInvocationError: the request does not name a component of this endpoint that has a copy, or the copy
                failed.
        """
        name = invocation.headers.get(COMPONENT_HEADER)
        if name is None:
            raise errors.component_missing()
        while True:
            placed = self._placed.get(name)
            if placed is None or placed.component.endpoint != invocation.endpoint:
                raise errors.no_component(name)
            wanted = invocation.headers.get("x-amzn-sagemaker-target-variant", placed.component.variant)
            if wanted != placed.component.variant:
                raise errors.no_variant(wanted)
            copies = placed.copies
            if not copies:
                self._record(name, "NoCapacityInvocationFailures", 1)
                raise errors.component_without_capacity()
            self._record(name, "InvocationsPerCopy", 1 / len(copies))
            try:
                return answered_by(copies[next(placed.turns) % len(copies)], invocation, errors, deadline)
            except RetiredError:
                continue  # the copies were changed meanwhile

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            placed = list(self._placed.values())
            self._placed.clear()
        self._stop([copy for each in placed for copy in each.copies])

    def _start_all_or_none(self, component: Component, count: int) -> list[RunningVariant]:
        logs = self._logs / component.endpoint
        logs.mkdir(parents=True, exist_ok=True)
        started: list[RunningVariant] = []
        try:
            for _ in range(count):
                started.append(
                    RunningVariant(
                        Variant(component.variant, 1, "", component.container),
                        self._settings,
                        self._directory / f"{component.name}-{next(self._numbers)}",
                        logs / f"{component.name}.log",
                        self._errors(component.endpoint),
                        functools.partial(self._record, component.name),
                    )
                )
        except BaseException:
            self._stop(started)
            raise
        return started

    def _stop(self, copies: list[RunningVariant]) -> None:
        if copies:
            with ThreadPoolExecutor(len(copies)) as pool:
                list(pool.map(RunningVariant.stop, copies))
