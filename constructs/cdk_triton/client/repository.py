"""The clients of `for_repository`, which check requests against a repository before they send them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from cdk_triton._options import takes
from cdk_triton.client.generation import flattened
from cdk_triton.client.options import (
    GenerateRequestOptions,
    RequestOptions,
    SingleRequestOptions,
    TargetOptions,
    single_model,
)
from cdk_triton.client.sequences import AsyncSequence, Sequence

if TYPE_CHECKING:
    from cdk_triton.client.aio import AsyncTritonClient
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.endpoint import TritonClient
    from cdk_triton.client.many import Answer
    from cdk_triton.client.payload import InferenceResult
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.streams import AsyncResultStream, ResultStream

__all__ = ["AsyncRepositoryClient", "RepositoryClient"]


@dataclass(frozen=True)
class RepositoryClient:
    """Checks requests against a repository's `config.pbtxt` before the client sends them.

    `TritonClient.for_repository` returns it.

    Attributes:
        client: the client that sends the requests.
        contract: the inputs and outputs of the model.
        target: the arguments of `infer` that name the model, such as `ensemble`.
    """

    client: TritonClient
    contract: Contract
    target: TargetOptions

    @takes(SingleRequestOptions)
    def infer(self, inputs: Mapping[str, Any], **options: Unpack[SingleRequestOptions]) -> InferenceResult:
        """Run one inference, as `TritonClient.infer` does.

        Args:
            inputs: a mapping from each input's name to an array of the type in `config.pbtxt`, or to numbers, strings
                or lists. Numbers, strings and lists are converted to such an array if the conversion loses nothing.
                Dimensions of 1 at the end may be omitted, and so may the batch dimension of a single row.
            **options: options of `TritonClient.infer`; `SingleRequestOptions` lists them.

        Raises:
            ConfigurationError: `inputs` or the option `outputs` names an input or output that the model does not have,
                an input is missing, or its type or shape differs from `config.pbtxt`; or `queue_timeout_seconds` has
                no effect on the model. Nothing was sent.
            InvocationError: `TritonClient.infer` raises it, or an output's type differs from `config.pbtxt`.
        """
        return self._infer(inputs, None, options)

    def sequence(self, sequence_id: int | str) -> Sequence:
        """Return the calls of one sequence, as `TritonClient.sequence` does, with the checks of `infer`.

        Raises:
            ConfigurationError: the `CONTROL_SEQUENCE_CORRID` of the model has another type than `sequence_id`.
        """
        return Sequence(self.contract.check_sequence_id(sequence_id), self._infer)

    def _infer(
        self, inputs: Mapping[str, Any], step: SequenceStep | None, options: SingleRequestOptions
    ) -> InferenceResult:
        self.contract.check_queue_timeout(options)
        options["outputs"] = self.contract.known_outputs(options.get("outputs"))
        arrays = self.contract.complete(inputs)
        return self.contract.check(self.client._infer(arrays, step, **self.target, **options))

    @takes(GenerateRequestOptions)
    def stream(self, inputs: Mapping[str, Any], **options: Unpack[GenerateRequestOptions]) -> ResultStream:
        """Return the results of one request as they arrive, as `TritonClient.stream` does, with the types of the model.

        Args:
            inputs: the inputs, as in `infer`. An input can also be given without its shape, as a number, a string, or a
                list or one-dimensional array of all elements. Triton then makes a tensor with the `dims` of
                `config.pbtxt`.
            **options: options of `TritonClient.stream`; `GenerateRequestOptions` lists them.

        Raises:
            ConfigurationError: an input does not fit `config.pbtxt` or Triton's generate protocol, or the client has a
                target model; nothing was sent.
            InvocationError: `TritonClient.stream` raises it.
        """
        return self.client._stream(
            flattened(self.contract, inputs), self.contract, {**single_model(self.target), **options}
        )

    @takes(GenerateRequestOptions)
    def generate(self, inputs: Mapping[str, Any], **options: Unpack[GenerateRequestOptions]) -> InferenceResult:
        """Return the only result of one request, as `TritonClient.generate` does, with the inputs of `stream`."""
        return self.client._generate(
            flattened(self.contract, inputs), self.contract, {**single_model(self.target), **options}
        )

    @takes(RequestOptions)
    def infer_many(
        self, requests: Iterable[Mapping[str, Any]], *, concurrency: int = 16, **options: Unpack[RequestOptions]
    ) -> list[Answer]:
        """Run many requests, as `TritonClient.infer_many` does with the `max_batch_size` of `config.pbtxt`.

        Args:
            requests: the inputs of each request, as in `infer`.
            concurrency: see `TritonClient.infer_many`.
            **options: options of `infer` that apply to each request; `RequestOptions` lists them.

        Raises:
            ConfigurationError: the option `outputs` names an output that the model does not have, or `concurrency` is
                not a whole number of at least 1.
        """
        self.contract.check_queue_timeout(options)
        options["outputs"] = self.contract.known_outputs(options.get("outputs"))
        return self.client._infer_many(
            requests,
            self.contract.max_batch_size or 1,
            concurrency,
            self.contract.complete,
            self.contract.check,
            {**self.target, **options},
        )


@dataclass(frozen=True)
class AsyncRepositoryClient:
    """A `RepositoryClient` of an `AsyncTritonClient`.

    `AsyncTritonClient.for_repository` returns it.

    Attributes:
        client: the client that sends the requests.
        contract: the inputs and outputs of the model.
        target: the arguments of `infer` that name the model, such as `ensemble`.
    """

    client: AsyncTritonClient
    contract: Contract
    target: TargetOptions

    @takes(SingleRequestOptions)
    async def infer(self, inputs: Mapping[str, Any], **options: Unpack[SingleRequestOptions]) -> InferenceResult:
        """Run one inference, as `RepositoryClient.infer` does."""
        return await self._infer(inputs, None, options)

    def sequence(self, sequence_id: int | str) -> AsyncSequence:
        """Return the calls of one sequence, as `RepositoryClient.sequence` does, for `async with`."""
        return AsyncSequence(self.contract.check_sequence_id(sequence_id), self._infer)

    async def _infer(
        self, inputs: Mapping[str, Any], step: SequenceStep | None, options: SingleRequestOptions
    ) -> InferenceResult:
        self.contract.check_queue_timeout(options)
        options["outputs"] = self.contract.known_outputs(options.get("outputs"))
        arrays = self.contract.complete(inputs)
        return self.contract.check(await self.client._infer(arrays, step, **self.target, **options))

    @takes(GenerateRequestOptions)
    async def stream(self, inputs: Mapping[str, Any], **options: Unpack[GenerateRequestOptions]) -> AsyncResultStream:
        """Return the results of one request as they arrive, as `RepositoryClient.stream` does."""
        return await self.client._stream(
            flattened(self.contract, inputs), self.contract, {**single_model(self.target), **options}
        )

    @takes(GenerateRequestOptions)
    async def generate(self, inputs: Mapping[str, Any], **options: Unpack[GenerateRequestOptions]) -> InferenceResult:
        """Return the only result of one request, as `RepositoryClient.generate` does."""
        return await self.client._generate(
            flattened(self.contract, inputs), self.contract, {**single_model(self.target), **options}
        )

    @takes(RequestOptions)
    async def infer_many(
        self, requests: Iterable[Mapping[str, Any]], *, concurrency: int = 64, **options: Unpack[RequestOptions]
    ) -> list[Answer]:
        """Answer many requests, as `RepositoryClient.infer_many` does."""
        self.contract.check_queue_timeout(options)
        options["outputs"] = self.contract.known_outputs(options.get("outputs"))
        return await self.client._infer_many(
            requests,
            self.contract.max_batch_size or 1,
            concurrency,
            self.contract.complete,
            self.contract.check,
            {**self.target, **options},
        )
