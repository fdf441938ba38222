"""Requests that belong together, for models with state between them: `Sequence`, and `AsyncSequence` for asyncio."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack

from cdk_triton._options import takes
from cdk_triton.client.options import SingleRequestOptions
from cdk_triton.client.scheduling import SequenceStep, check_sequence_id
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.client.payload import InferenceResult

__all__ = ["AsyncSequence", "Sequence"]


class _Steps:
    """Which call of a sequence starts it, and whether it has ended."""

    def __init__(self, sequence_id: int | str) -> None:
        self.sequence_id = check_sequence_id(sequence_id)
        self._is_started = self._is_ended = False

    def next(self, *, last: bool) -> SequenceStep:
        """The place of the next call.

        Raises:
            ConfigurationError: the sequence has ended.
        """
        if self._is_ended:
            raise ConfigurationError(
                f"the sequence {self.sequence_id!r} has ended with last=True: begin another one with client.sequence(…)"
            )
        return SequenceStep(self.sequence_id, not self._is_started, last)

    def answered(self, step: SequenceStep) -> None:
        """Note that the model has run a call. After an error, the same place is tried again."""
        self._is_started, self._is_ended = True, step.is_last

    def warn_if_open(self) -> None:
        """Warn of a sequence whose state stays in the model until Triton's limit for idle sequences."""
        if self._is_started and not self._is_ended:
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

    Leaving the context without a last call is a `ResourceWarning`. A sequence is not for several threads.
    """

    def __init__(self, sequence_id: int | str, send: _Sends) -> None:
        self._steps, self._send = _Steps(sequence_id), send

    @takes(SingleRequestOptions)
    def infer(self, inputs: Any, *, last: bool = False, **options: Unpack[SingleRequestOptions]) -> InferenceResult:
        """Run the next call of the sequence.

        Args:
            inputs: the inputs, as in `infer` of the client that made the sequence.
            last: whether this call ends the sequence.
            **options: options of `TritonClient.infer`; `SingleRequestOptions` lists them.

        Raises:
            ConfigurationError: the sequence has ended, or `infer` of the client raises it.
            InvocationError: `infer` of the client raises it. The next call then takes the place of this one.
        """
        step = self._steps.next(last=last)
        result = self._send(inputs, step, options)
        self._steps.answered(step)
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:  # otherwise the error says more
            self._steps.warn_if_open()


class AsyncSequence:
    """The calls of one sequence on an event loop, as `Sequence`. `AsyncTritonClient.sequence` returns it."""

    def __init__(
        self,
        sequence_id: int | str,
        send: Callable[[Any, SequenceStep, SingleRequestOptions], Awaitable[InferenceResult]],
    ) -> None:
        self._steps, self._send = _Steps(sequence_id), send

    @takes(SingleRequestOptions)
    async def infer(
        self, inputs: Any, *, last: bool = False, **options: Unpack[SingleRequestOptions]
    ) -> InferenceResult:
        """Run the next call of the sequence, as `Sequence.infer` does. Await each call before the next one."""
        step = self._steps.next(last=last)
        result = await self._send(inputs, step, options)
        self._steps.answered(step)
        return result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._steps.warn_if_open()
