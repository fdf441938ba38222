"""One invocation of a handler: its storage, its builders, its clock."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from .builders import Builders, JobService
from .clients import CONNECTIONS, client
from .storage import Storage
from .turn import Turn

__all__ = ["Each", "Invocation", "running"]


class Each(Protocol):
    """`map`, or a pool's own."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]:
        """Return the results in the order of the items. The first exception ends it."""


class _Kinds(Protocol):
    def __contains__(self, kind: str) -> bool: ...

    def __getitem__(self, kind: str) -> JobService: ...


def _stack_status(stack: str) -> str:
    # In a VPC without an endpoint for CloudFormation there is no answer, and the poll has other work.
    found = client("cloudformation", attempts=2, read_seconds=5).describe_stacks(StackName=stack)
    return str(found["Stacks"][0]["StackStatus"])


@dataclass(frozen=True)
class Invocation:
    """One invocation of a handler.

    Attributes:
        storage: the store's bucket.
        builders: by kind.
        remaining_millis: returns the time that is left, in milliseconds.
        each: applies a function to items, some of them concurrently.
        now: the time, in seconds since 1970.
        token: makes 16 hexadecimal digits that are unique.
        promotes_from: the bucket of the store that archives are promoted from; None if this store builds for itself.
        is_last: whether the request fails if this poll does not finish it.
        stack_status: returns the status of a stack, as in `UPDATE_IN_PROGRESS`.
    """

    storage: Storage
    builders: _Kinds
    remaining_millis: Callable[[], int]
    each: Each = map
    now: Callable[[], float] = time.time
    token: Callable[[], str] = lambda: secrets.token_hex(8)
    promotes_from: str | None = None
    is_last: bool = False
    stack_status: Callable[[str], str] = _stack_status

    @cached_property
    def turn(self) -> Turn:
        """The time in which this poll begins parts."""
        return Turn(self.remaining_millis, is_last=self.is_last)


@contextmanager
def running(context: Any) -> Iterator[Invocation]:
    """The invocation that Lambda describes in `context`, with as many calls at once as there are connections."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        yield Invocation(
            Storage.of_environment(),
            Builders.of_environment(),
            context.get_remaining_time_in_millis,
            pool.map,
            promotes_from=os.environ.get("PROMOTES_FROM"),
        )
