"""`AsyncTritonClient`: the client for asyncio, with the methods of `TritonClient`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from cdk_triton._options import takes
from cdk_triton.client.aio_runtime import AioRuntime
from cdk_triton.client.contract import Contract
from cdk_triton.client.invocation import Invocation
from cdk_triton.client.many import Answer, Batch, Batches, arrays_of, can_be_halved, check_bounds
from cdk_triton.client.names import MAX_AGE_SECONDS, FixedNames, Names, ParameterNames, Target, is_gone
from cdk_triton.client.options import (
    GenerateOptions,
    InferManyOptions,
    InferOptions,
    SubmitOptions,
    TargetOptions,
    listed,
)
from cdk_triton.client.repository import AsyncRepositoryClient
from cdk_triton.client.runtime import default_client, foreign_errors_translated
from cdk_triton.client.sequences import AsyncSequence
from cdk_triton.client.streams import STREAM_PERMISSION, AsyncResultStream
from cdk_triton.client.submission import PERMISSION, Submission
from cdk_triton.errors import CdkTritonError, ConfigurationError, InvocationError

if TYPE_CHECKING:
    from pathlib import Path

    from cdk_triton.client.async_result import AsyncResult
    from cdk_triton.client.many import Arrays
    from cdk_triton.client.payload import InferenceResult
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.tensors import Inputs, Tensor
    from cdk_triton.triton import ModelRepository

__all__ = ["AsyncTritonClient"]

_T = TypeVar("_T")


class AsyncTritonClient:
    """Invokes one SageMaker endpoint whose container is Triton, with many requests at a time on one event loop.

    `async with` opens one session for all requests. Install the extra `aio` to use this class:

        async with AsyncTritonClient("my-endpoint") as client:
            answers = await asyncio.gather(*(client.infer(each) for each in requests))

    The client uses the region, credentials and endpoint URL of boto3's default session, but not its hooks or retries.
    It rejects an environment that sets a proxy or a CA bundle. Each request is sent once, except as `TritonClient`
    describes. Cancelling a request closes its connection.

    Args:
        endpoint_name: the name of the endpoint, not its ARN.
        concurrency: how many requests wait for their answers at the same time; the others wait to be sent. A stream
            that has begun does not count.
        input_location: see `TritonClient`.
        s3: see `TritonClient`.

    Raises:
        ConfigurationError: `endpoint_name` is not a valid name, `input_location` is not an S3 URI, or `concurrency` is
            not a whole number of at least 1. `async with` also raises it if aiohttp is not installed, no AWS region is
            configured, or the environment sets a proxy or a CA bundle.
    """

    def __init__(
        self, endpoint_name: str, *, concurrency: int = 64, input_location: str | None = None, s3: Any = None
    ) -> None:
        names = FixedNames.of(endpoint_name, input_location)
        self._prepare(lambda: names, concurrency, s3)

    def _prepare(self, find_names: Callable[[], Names], concurrency: int, s3: Any) -> None:
        check_bounds(1, concurrency)
        self._find_names, self._concurrency, self._s3 = find_names, concurrency, s3
        self._opened: tuple[AioRuntime, Names] | None = None

    @classmethod
    def from_parameters(
        cls, path: str, *, concurrency: int = 64, s3: Any = None, ssm: Any = None, max_age: float = MAX_AGE_SECONDS
    ) -> Self:
        """Create a client as `TritonClient.from_parameters` does; `async with` reads the parameters.

        Args:
            path: see `TritonClient.from_parameters`.
            concurrency: see the class.
            s3: see the class.
            ssm: see `TritonClient.from_parameters`.
            max_age: see `TritonClient.from_parameters`.
        """
        client = cls.__new__(cls)
        client._prepare(lambda: ParameterNames(path, ssm, max_age, s3=s3), concurrency, s3)
        return client

    async def __aenter__(self) -> Self:
        names = await asyncio.to_thread(self._find_names)
        self._opened = await AioRuntime.open(self._concurrency), names
        return self

    async def __aexit__(self, *_: object) -> None:
        runtime, _names = self._open
        self._opened = None
        await runtime.close()

    @property
    def _open(self) -> tuple[AioRuntime, Names]:
        if self._opened is None:
            raise ConfigurationError(
                "the AsyncTritonClient is not open: use it within `async with AsyncTritonClient(…) as client:`"
            )
        return self._opened

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint."""
        return self._open[1].endpoint_name

    @takes(TargetOptions)
    def for_repository(
        self, repository: ModelRepository | str | Path, **target: Unpack[TargetOptions]
    ) -> AsyncRepositoryClient:
        """Return a client that checks requests against the repository, as `TritonClient.for_repository` does."""
        return AsyncRepositoryClient(self, Contract.of(repository), target)

    @takes(InferOptions)
    async def infer(self, inputs: Inputs, **options: Unpack[InferOptions]) -> InferenceResult:
        """Run one inference, with the arguments, result and errors of `TritonClient.infer`."""
        return await self._infer(inputs, None, **options)

    @takes(TargetOptions)
    def sequence(self, sequence_id: int | str, **target: Unpack[TargetOptions]) -> AsyncSequence:
        """Return the calls of one sequence, as `TritonClient.sequence` does, for `async with`."""
        return AsyncSequence(sequence_id, lambda inputs, step, options: self._infer(inputs, step, **target, **options))

    async def _infer(
        self, inputs: Inputs, step: SequenceStep | None, **options: Unpack[InferOptions]
    ) -> InferenceResult:
        async def send(target: Target) -> InferenceResult:
            invocation = Invocation.of(target, inputs, options, step)
            answer = await self._answer(invocation)
            if step is not None and step.course is not None:
                step.course.answered(step, target)
            return invocation.result(*answer)

        if step is not None and step.course is not None and step.course.target is not None:
            return await send(step.course.target)
        return await self._renewing(options, send)

    @takes(GenerateOptions)
    async def stream(self, inputs: Mapping[str, Any], **options: Unpack[GenerateOptions]) -> AsyncResultStream:
        """Send one request, and return its results as they arrive, as `TritonClient.stream` does.

        Returns:
            An asynchronous iterator: `async for result in await client.stream(inputs)`.
        """
        return await self._stream(inputs, None, options)

    @takes(GenerateOptions)
    async def generate(self, inputs: Mapping[str, Any], **options: Unpack[GenerateOptions]) -> InferenceResult:
        """Send one request, and return its only result, as `TritonClient.generate` does."""
        return await self._generate(inputs, None, options)

    async def _stream(
        self, inputs: Mapping[str, Any], contract: Contract | None, options: GenerateOptions
    ) -> AsyncResultStream:
        async def send(target: Target) -> AsyncResultStream:
            invocation, sent = Invocation.generating(target, inputs, options), time.monotonic()
            with foreign_errors_translated(invocation.where, STREAM_PERMISSION):
                response = await self._open[0].invoke_endpoint_with_response_stream(**invocation.arguments)
            return AsyncResultStream(invocation, response, sent, contract)

        return await self._renewing({}, send)

    async def _generate(
        self, inputs: Mapping[str, Any], contract: Contract | None, options: GenerateOptions
    ) -> InferenceResult:
        async def send(target: Target) -> InferenceResult:
            invocation = Invocation.generating(target, inputs, options)
            return invocation.generated(*await self._answer(invocation), contract)

        return await self._renewing({}, send)

    async def _renewing(self, options: TargetOptions, send: Callable[[Target], Awaitable[_T]]) -> _T:
        """Send a request as `TritonClient._renewing` does."""
        names = self._open[1]
        target = await self._target(options)
        try:
            return await send(target)
        except InvocationError as error:
            if not is_gone(error) or not await asyncio.to_thread(names.renew, target):
                raise
        return await send(await self._target(options))

    async def _target(self, options: TargetOptions) -> Target:
        names, ensemble, target_model = self._open[1], options.get("ensemble"), options.get("target_model")
        if names.may_block(ensemble):
            return await asyncio.to_thread(names.target, ensemble, target_model)
        return names.target(ensemble, target_model)

    async def _answer(self, invocation: Invocation) -> tuple[Mapping[str, Any], bytes]:
        with foreign_errors_translated(invocation.where):
            response = await self._open[0].invoke_endpoint(**invocation.arguments)
        return response, response["Body"].read()

    @takes(InferManyOptions)
    async def infer_many(
        self,
        requests: Iterable[Mapping[str, Tensor]],
        *,
        max_batch_size: int,
        concurrency: int = 64,
        **options: Unpack[InferManyOptions],
    ) -> list[Answer]:
        """Combine many small requests into a few large ones, as `TritonClient.infer_many` does."""
        options["outputs"] = listed(options.get("outputs"))
        return await self._infer_many(requests, max_batch_size, concurrency, arrays_of, lambda result: result, options)

    async def _infer_many(
        self,
        requests: Iterable[Mapping[str, Any]],
        max_batch_size: int,
        concurrency: int,
        arrays: Callable[[Mapping[str, Any]], Arrays],
        check: Callable[[InferenceResult], InferenceResult],
        options: InferManyOptions,
    ) -> list[Answer]:
        check_bounds(max_batch_size, concurrency)
        work, bound = Batches.of(requests, max_batch_size, arrays), asyncio.Semaphore(concurrency)

        async def answers(batch: Batch) -> list[Answer]:
            try:
                async with bound:
                    return batch.divide(check(await self.infer(batch.inputs(), **options)))
            except CdkTritonError as error:
                if not can_be_halved(error, batch):
                    return [error] * len(batch.numbers)
            first, second = batch.halves()
            return [*await answers(first), *await answers(second)]

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answers(batch)) for batch in work.batches]
        return work.in_order(task.result() for task in tasks)

    @takes(SubmitOptions)
    async def submit(self, inputs: Inputs, **options: Unpack[SubmitOptions]) -> AsyncResult:
        """Send a request to an asynchronous endpoint, as `TritonClient.submit` does.

        Returns:
            The request. Its method `result` blocks: `await asyncio.to_thread(request.result, 60)`.
        """
        runtime, names = self._open
        request = Submission.of(names.endpoint_name, inputs, options)
        s3 = self._s3
        if request.is_inline(names, takes_body=True):
            source: dict[str, Any] = {"Body": request.body}
        else:
            s3 = await asyncio.to_thread(default_client, "s3") if s3 is None else s3
            source = {"InputLocation": await asyncio.to_thread(request.upload, s3, names.input_location)}
        with foreign_errors_translated(request.where, PERMISSION):
            answer = await runtime.invoke_endpoint_async(**request.arguments(source))
        return request.result(answer, s3)
