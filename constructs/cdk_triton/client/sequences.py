"""Requests that belong together, for models with state between them: `Sequence`, and `AsyncSequence` for asyncio."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack

from cdk_triton._options import takes
from cdk_triton.client.options import SingleRequestOptions
from cdk_triton.client.scheduling import SequenceStep, check_sequence_id
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.client.names import Target
    from cdk_triton.client.payload import InferenceResult

__all__ = ["AsyncSequence", "Sequence"]


class _Course:
    """Which call of a sequence starts it, where it runs, and whether it has ended."""

    def __init__(self, sequence_id: int | str) -> None:
        self.sequence_id = check_sequence_id(sequence_id)
        self.target: Target | None = None
        self._is_ended = False
        self._under_way = threading.Lock()

    @contextmanager
    def next(self, *, last: bool) -> Iterator[SequenceStep]:
        """The place of the next call, which is under way within the context. Without an answer, it is not taken.

        Raises:
            ConfigurationError: the sequence has ended, or another call is under way.
        """
        if not self._under_way.acquire(blocking=False):
            raise ConfigurationError(
                f"a call of the sequence {self.sequence_id!r} is still under way: wait for each call before the next "
                "one, and use a sequence of its own for each thread or task"
            )
        try:
            if self._is_ended:
                raise ConfigurationError(
                    f"the sequence {self.sequence_id!r} has ended with last=True: begin another one with "
                    "client.sequence(…)"
                )
            yield SequenceStep(self.sequence_id, self.target is None, last, self)
        finally:
            self._under_way.release()

    def answered(self, step: SequenceStep, target: Target) -> None:
        """Note that the model has run a call."""
        self.target, self._is_ended = target, step.is_last

    def warn_if_open(self) -> None:
        """Warn of a sequence whose state stays in the model until Triton's limit for idle sequences."""
        if self.target is not None and not self._is_ended:
            warnings.warn(
                f"the sequence {self.sequence_id!r} was left without a last call: its place in the model is free only "
                "after max_sequence_idle_microseconds of config.pbtxt; pass last=True to the last call",
                ResourceWarning,
                stacklevel=3,
            )


class _Sends(Protocol):
    def __call__(self, inputs: Any, step: SequenceStep, options: SingleRequestOptions) -> InferenceResult:
        """Send one call."""


class Sequence:
    """The calls of one sequence, as a context. `TritonClient.sequence` returns it.

    Leaving the context without a last call gives a `ResourceWarning`. Use a sequence in one thread only.
    """

    def __init__(self, sequence_id: int | str, send: _Sends) -> None:
        self._course, self._send = _Course(sequence_id), send

    @takes(SingleRequestOptions)
    def infer(self, inputs: Any, *, last: bool = False, **options: Unpack[SingleRequestOptions]) -> InferenceResult:
        """Run the next call of the sequence.

        Args:
            inputs: the inputs, as in `infer` of the client that made the sequence.
            last: whether this call ends the sequence.
            **options: options of `TritonClient.infer`; `SingleRequestOptions` lists them.

        Raises:
            ConfigurationError: the sequence has ended, another call of the sequence is under way, or `infer` of the
                client raises it.
            InvocationError: `infer` of the client raises it. The next call then takes the place of the failed call,
                unless the model answered with something that the client rejects.
        """
        with self._course.next(last=last) as step:
            return self._send(inputs, step, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:  # otherwise the error says more
            self._course.warn_if_open()


class AsyncSequence:
    """The calls of one sequence on an event loop, as `Sequence`. `AsyncTritonClient.sequence` returns it."""

    def __init__(
        self,
        sequence_id: int | str,
        send: Callable[[Any, SequenceStep, SingleRequestOptions], Awaitable[InferenceResult]],
    ) -> None:
        self._course, self._send = _Course(sequence_id), send

    @takes(SingleRequestOptions)
    async def infer(
        self, inputs: Any, *, last: bool = False, **options: Unpack[SingleRequestOptions]
    ) -> InferenceResult:
        """Run the next call of the sequence, as `Sequence.infer` does. Await each call before the next one."""
        with self._course.next(last=last) as step:
            return await self._send(inputs, step, options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._course.warn_if_open()
