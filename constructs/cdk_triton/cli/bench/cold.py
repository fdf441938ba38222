"""Measures cold loads of target models, one after the other: the first request of each against the second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cdk_triton.client import TritonClient
from cdk_triton.client.kserve import Body
from cdk_triton.errors import InvocationError, ModelNotReadyError

__all__ = ["ColdLoad", "cold_loads"]

_LONGEST_SECONDS = 900.0
_PAUSE_SECONDS = 1.0
_COLD_SECONDS = 0.2


@dataclass(frozen=True)
class ColdLoad:
    """One target model.

    Attributes:
        target: the name of the target model.
        first: the duration of the first request in seconds. The model may have been loaded during this request.
        second: the duration of the next request in seconds.
        error: the reason why the times are missing; "" if they are there.
    """

    target: str
    first: float = 0.0
    second: float = 0.0
    error: str = ""

    @property
    def is_cold(self) -> bool:
        """Whether the first request took so much longer that it may have loaded the model."""
        return self.first - self.second > _COLD_SECONDS


def cold_loads(
    client: TritonClient, bodies: Iterator[tuple[str, Body]], *, wait: Callable[[float], None] = time.sleep
) -> Iterator[ColdLoad]:
    """Send two requests to each target model.

    If loading a model takes longer than the time limit of a request, SageMaker answers ModelNotReady. The request is
    then sent again, and its time counts from the first one.
    """
    for target, body in bodies:
        try:
            first = _asked(client, target, body, wait)
            second = _asked(client, target, body, wait)
        except InvocationError as error:
            yield ColdLoad(target, error=str(error))
        else:
            yield ColdLoad(target, first, second)


def _asked(client: TritonClient, target: str, body: Body, wait: Callable[[float], None]) -> float:
    start = time.perf_counter()
    while True:
        try:
            client.infer(body.inputs, target_model=target, **body.options)
        except ModelNotReadyError:
            if time.perf_counter() - start > _LONGEST_SECONDS:
                raise
            wait(_PAUSE_SECONDS)
        else:
            return time.perf_counter() - start
