"""Results of a streamed answer, each as it arrives: `ResultStream`, and `AsyncResultStream` for asyncio."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from cdk_triton.client.runtime import foreign_errors_translated
from cdk_triton.errors import ConfigurationError, InvocationError, InvocationTimeoutError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdk_triton.client.contract import Contract
    from cdk_triton.client.invocation import Invocation
    from cdk_triton.client.payload import InferenceResult

__all__ = ["STREAM_PERMISSION", "AsyncResultStream", "ResultStream", "bytes_of"]

STREAM_PERMISSION = (
    "sagemaker:InvokeEndpoint and sagemaker:InvokeEndpointWithResponseStream on this endpoint and, if it has any, on "
    "the component"
)
"""AWS's API reference names the first action only; the list of actions for policies has both."""


_AGAIN = "the model may still run, so decide whether to call again"


class _Stream:
    """What both kinds of streams share.

    Args:
        invocation: the request.
        response: the answer of InvokeEndpointWithResponseStream.
        sent: when the request was sent, on the monotonic clock.
        contract: the model's outputs, if they are known.
    """

    def __init__(
        self, invocation: Invocation, response: Mapping[str, Any], sent: float, contract: Contract | None
    ) -> None:
        self._variant: str | None = response.get("InvokedProductionVariant")
        self._where, self._sent = invocation.where, sent
        self._first: float | None = None
        self._count = 0
        self._reader = invocation.reader(response, contract)
        self._body = response["Body"]
        self._reading = threading.Lock()
        self._is_closed = False
        # A caller that only stops reading drops this object, which has to close the connection, too.
        self._end = weakref.finalize(self, self._body.close)
        self._end.atexit = False

    @property
    def variant(self) -> str | None:
        """The production variant that answers, or None if the service does not return it."""
        return self._variant

    @property
    def first_result_seconds(self) -> float | None:
        """The time from sending the request until the caller read its first result, in seconds; None before that.

        The time includes whatever the caller does before it reads.
        """
        return self._first

    def close(self) -> None:
        """Close the connection; there are no further results. A thread or task that waits for a result gets none."""
        self._is_closed = True
        if self._reading.acquire(blocking=False):
            self._end()
            self._reading.release()
        else:
            self._interrupt()

    def _interrupt(self) -> None:
        """End the wait of the reader."""
        raise NotImplementedError

    @contextmanager
    def _one_reader(self) -> Iterator[None]:
        """Read one result within the context, which closes the stream after an error, unless `close` caused it."""
        if not self._reading.acquire(blocking=False):
            raise ConfigurationError(
                f"{self._where}: another thread or task waits for the next result of this stream: read a stream from "
                "one at a time"
            )
        try:
            yield
        except BaseException as error:
            was_closed, self._is_closed = self._is_closed, True
            if not was_closed or not isinstance(error, Exception):
                raise
        finally:
            self._reading.release()
            if self._is_closed:  # by this reader, or meanwhile by another thread
                self.close()

    def _arrived(self, result: InferenceResult) -> InferenceResult:
        if self._first is None:
            self._first = time.monotonic() - self._sent
        self._count += 1
        return result

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        from botocore.eventstream import ParserError
        from botocore.exceptions import BotoCoreError, ReadTimeoutError
        from urllib3.exceptions import HTTPError
        from urllib3.exceptions import ReadTimeoutError as TheirReadTimeoutError

        where = f"{self._where}, after {self._count} result{'' if self._count == 1 else 's'}"
        with foreign_errors_translated(where, STREAM_PERMISSION):
            try:
                yield
            except (ReadTimeoutError, TheirReadTimeoutError) as error:
                raise InvocationTimeoutError(
                    f"{where}: nothing arrived within the read timeout of the client; {_AGAIN}"
                ) from error
            except (BotoCoreError, HTTPError) as error:  # boto3 lets those of urllib3 through
                raise InvocationError(
                    f"{where}: the connection broke before the end of the answer: {error}; {_AGAIN}"
                ) from error
            except ParserError as error:
                raise InvocationError(f"{where}: the stream is damaged: {error}; {_AGAIN}") from error


class ResultStream(_Stream, Iterator["InferenceResult"]):
    """The results of one request, each as it arrives, for `for`.

    `TritonClient.stream` returns it. The connection closes after the last result, after an error, and when the caller
    stops reading: with `close`, at the end of a `with` block, or when the stream is no longer referenced. One thread
    at a time can read a stream.
    """

    def __init__(
        self, invocation: Invocation, response: Mapping[str, Any], sent: float, contract: Contract | None
    ) -> None:
        super().__init__(invocation, response, sent, contract)
        self._results: Iterator[InferenceResult] = _results_of(self._reader, self._body)

    def __next__(self) -> InferenceResult:
        """Wait for the next result.

        Raises:
            ModelError: the next answer of the model is an error, or the container broke the stream off.
            ConfigurationError: another thread waits for the next result.
            InvocationTimeoutError: nothing arrived in time.
            InvocationError: the connection broke, or the bytes are not an answer of Triton.
        """
        result = None
        with self._one_reader():
            if not self._is_closed:
                with self._errors_translated():
                    result = next(self._results, None)
            self._is_closed = self._is_closed or result is None
        if result is None:
            raise StopIteration
        return self._arrived(result)

    def _interrupt(self) -> None:
        # Closing waits for the reader. Since 2.3, urllib3 can wake it; an older one lets it wait for the next bytes.
        raw: Any = getattr(self._body, "_raw_stream", None)
        with suppress(AttributeError, ValueError, RuntimeError, OSError):
            raw.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncResultStream(_Stream, AsyncIterator["InferenceResult"]):
    """The results of one request, each as it arrives, for `async for`.

    `AsyncTritonClient.stream` returns it. Apart from `async for`, it is like a `ResultStream`. A stream that has begun
    does not count towards the client's `concurrency`.
    """

    def __init__(
        self, invocation: Invocation, response: Mapping[str, Any], sent: float, contract: Contract | None
    ) -> None:
        super().__init__(invocation, response, sent, contract)
        self._results: AsyncIterator[InferenceResult] = _async_results_of(self._reader, self._body)

    async def __anext__(self) -> InferenceResult:
        """Wait for the next result, as `ResultStream.__next__` does, with the same errors."""
        result = None
        with self._one_reader():
            if not self._is_closed:
                with self._errors_translated():
                    result = await anext(self._results, None)
            self._is_closed = self._is_closed or result is None
        if result is None:
            raise StopAsyncIteration
        return self._arrived(result)

    def _interrupt(self) -> None:
        self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _results_of(reader: Any, body: Any) -> Iterator[InferenceResult]:
    for event in body:
        yield from reader.feed(bytes_of(event))
    yield from reader.end()


async def _async_results_of(reader: Any, body: Any) -> AsyncIterator[InferenceResult]:
    async for event in body:
        for result in reader.feed(bytes_of(event)):
            yield result
    for result in reader.end():
        yield result


def bytes_of(event: Mapping[str, Any]) -> bytes:
    """An event that botocore does not know has no bytes."""
    found: bytes = event.get("PayloadPart", {}).get("Bytes", b"")
    return found
