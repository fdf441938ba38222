"""`TritonClient`: `infer` calls an endpoint, `stream` one that generates, `submit` an asynchronous one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from cdk_triton._options import takes
from cdk_triton.client.contract import Contract
from cdk_triton.client.direct_runtime import DirectRuntime
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
from cdk_triton.client.repository import RepositoryClient
from cdk_triton.client.runtime import (
    AsyncRuntime,
    SageMakerRuntime,
    StreamingRuntime,
    default_client,
    default_runtime,
    foreign_errors_translated,
    takes_body,
)
from cdk_triton.client.sequences import Sequence
from cdk_triton.client.streams import STREAM_PERMISSION, ResultStream
from cdk_triton.client.submission import PERMISSION, Submission
from cdk_triton.errors import CdkTritonError, InvocationError

if TYPE_CHECKING:
    from pathlib import Path

    from cdk_triton.client.async_result import AsyncResult
    from cdk_triton.client.many import Arrays
    from cdk_triton.client.payload import InferenceResult
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.tensors import Inputs, Tensor
    from cdk_triton.triton import ModelRepository

__all__ = ["TritonClient"]

_T = TypeVar("_T")


class TritonClient:
    """Invokes one SageMaker endpoint whose container is Triton.

    Each request is sent once, except as `from_parameters` and `infer_many` describe. The client does not retry, because
    a model may be stateful, and may have run even if the request timed out. Your own `runtime` keeps its retry
    configuration (botocore's default repeats a request after most failures). Threads may share a client.

    Args:
        endpoint_name: the name of the endpoint, not its ARN.
        runtime: a boto3 `sagemaker-runtime` client; by default a client of boto3's default session, with a read timeout
            of 70 seconds and without retries (SageMaker gives a container 60 seconds).
        input_location: the S3 URI below which `submit` uploads requests that are too large to send inline. The
            endpoint's parameter `async/input` contains it.
        s3: a boto3 `s3` client for asynchronous requests; by default a client of boto3's default session.

    Raises:
        ConfigurationError: `endpoint_name` is not a valid name, `input_location` is not an S3 URI, or no AWS region is
            configured.
    """

    def __init__(
        self,
        endpoint_name: str,
        runtime: SageMakerRuntime | None = None,
        *,
        input_location: str | None = None,
        s3: Any = None,
    ) -> None:
        self._names: Names = FixedNames.of(endpoint_name, input_location)
        self._runtime = default_runtime() if runtime is None else runtime
        self._is_default = runtime is None
        self._direct: DirectRuntime | None = None
        self._s3 = s3

    @classmethod
    def from_parameters(
        cls,
        path: str,
        runtime: SageMakerRuntime | None = None,
        *,
        s3: Any = None,
        ssm: Any = None,
        max_age: float = MAX_AGE_SECONDS,
    ) -> TritonClient:
        """Create a client from the parameters that an endpoint with `ssm_parameter_path` has in the Parameter Store.

        `infer(…, ensemble=…)` finds the target model by the name of the ensemble. The names are cached, and refreshed
        in the background. If SageMaker rejects a request because the endpoint or the target model may no longer exist,
        the names are refreshed at once, and the request is sent again if the name has changed. If a refresh fails, the
        last known names stay in use, and a warning is logged.

        Args:
            path: the endpoint's `ssm_parameter_path`.
            runtime: see the class.
            s3: see the class.
            ssm: a boto3 `ssm` client; by default a client of boto3's default session.
            max_age: the age in seconds from which a cached name is refreshed. The next request that uses the name
                starts the refresh in the background, and still sends the old name. This is safe, because a replaced
                target model stays callable. The name of a published ensemble is refreshed in the background after half
                of this time; after the whole time, a request waits until the new name is read.

        Raises:
            ConfigurationError: there is no parameter `endpoint-name` below the path, `max_age` is negative, or no AWS
                region is configured.
            InvocationError: the caller has no permission to read the parameters, or the service failed.
        """
        names = ParameterNames(path, ssm, max_age, s3=s3)
        client = cls(names.endpoint_name, runtime, s3=s3)
        client._names = names
        return client

    @takes(TargetOptions)
    def for_repository(
        self, repository: ModelRepository | str | Path, **target: Unpack[TargetOptions]
    ) -> RepositoryClient:
        """Return a client that checks requests against the repository's `config.pbtxt` before it sends them.

        Args:
            repository: the repository that the endpoint serves, or its directory.
            **target: the options that select the model, as in `infer`; `TargetOptions` lists them.

        Raises:
            ConfigurationError: the repository does not determine which model callers invoke, or the model's
                configuration has no inputs and outputs.
            ModelConfigError: the model's configuration cannot be read.
            RepositoryError: the directory cannot be read.
        """
        return RepositoryClient(self, Contract.of(repository), target)

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint."""
        return self._names.endpoint_name

    @takes(InferOptions)
    def infer(self, inputs: Inputs, **options: Unpack[InferOptions]) -> InferenceResult:
        """Run one inference, and return all outputs, or only the requested ones.

        Args:
            inputs: a mapping from each input tensor's name to an array, nested lists of strings, or tritonclient's
                `InferInput`; or an iterable of `InferInput`s alone. The shape includes the batch dimension. `str` is
                sent as UTF-8. An array of `bytes` that may end in zero bytes must have `dtype=object`, because numpy
                strips zero bytes from its `S` types.
            **options: the model, the requested outputs and more; `InferOptions` lists all options.

        Raises:
            ConfigurationError: an input cannot be sent, or boto3 rejects an argument.
            PayloadTooLargeError: the request body is larger than 6,291,456 bytes; nothing was sent.
            ModelError: the container returned an error; the message contains Triton's own message.
            NoCapacityError: the component has no copy, for example because it has scaled to zero; call again later.
            ModelNotReadyError: a multi-model endpoint is still loading the target model; call again.
            InvocationTimeoutError: the client got no connection or no response in time.
            InvocationError: any other failure of SageMaker or the network, or a response that cannot be read.
        """
        return self._infer(inputs, None, **options)

    def _infer(
        self,
        inputs: Inputs,
        step: SequenceStep | None,
        runtime: SageMakerRuntime | None = None,
        **options: Unpack[InferOptions],
    ) -> InferenceResult:
        sender = self._runtime if runtime is None else runtime

        def send(target: Target) -> InferenceResult:
            invocation = Invocation.of(target, inputs, options, step)
            answer = _answer(sender, invocation)
            if step is not None and step.course is not None:
                step.course.answered(step, target)
            return invocation.result(*answer)

        if step is not None and step.course is not None and step.course.target is not None:
            return send(step.course.target)
        return self._renewing(options, send)

    @takes(TargetOptions)
    def sequence(self, sequence_id: int | str, **target: Unpack[TargetOptions]) -> Sequence:
        """Return the calls of one sequence, for a model with a sequence batcher.

        The first call of `infer` starts the sequence, and `last=True` ends it. All calls must reach the same instance,
        so the endpoint must have a single instance: with several, SageMaker may choose another one for each request.
        With `ensemble`, all calls go to the target model of the first one.

        Args:
            sequence_id: Triton's correlation id, a whole number from 1 or a text of up to 128 bytes. Two sequences that
                run at the same time need different identifiers.
            **target: the options that select the model, as in `infer`; `TargetOptions` lists them.

        Returns:
            A context manager: `with client.sequence("user-7") as calls: calls.infer(inputs)`.

        Raises:
            ConfigurationError: Triton does not accept `sequence_id`.
        """
        return Sequence(sequence_id, lambda inputs, step, options: self._infer(inputs, step, **target, **options))

    @takes(GenerateOptions)
    def stream(self, inputs: Mapping[str, Any], **options: Unpack[GenerateOptions]) -> ResultStream:
        """Send one request, and return its results one after another, each as it arrives.

        The container must be that of a single model with the `inference_type` "generate_stream" or "generate". With
        "generate", the stream has one result. SageMaker gives a container 8 minutes until the end of a stream. By
        default, a stream may be silent for 70 seconds; a client with its own `runtime` uses the time limits of that
        runtime.

        Args:
            inputs: a mapping from each input tensor's name to a number, a string, or a list or an array with at most
                one dimension that is not 1. Triton's generate protocol has no shapes: the server derives each shape
                from the number of elements and the model's `dims`. FP16 and BF16 cannot be sent.
            **options: custom parameters, the variant and more; `GenerateOptions` lists all options.

        Returns:
            An iterator. The outputs of its results are one-dimensional. JSON has no types, so numbers are `int64` or
            `float64`, unless `for_repository` knows the types of the model.

        Raises:
            ConfigurationError: an input cannot be sent, or boto3 rejects an argument.
            PayloadTooLargeError: the request body is larger than 6,291,456 bytes; nothing was sent.
            InvocationError: as `infer` raises it, with its subclasses. The iterator raises it, too: a `ModelError` if a
                later answer is an error or the container breaks the stream off.
        """
        return self._stream(inputs, None, options)

    @takes(GenerateOptions)
    def generate(self, inputs: Mapping[str, Any], **options: Unpack[GenerateOptions]) -> InferenceResult:
        """Send one request in Triton's generate protocol, and return its only result.

        The container must be that of a single model with the `inference_type` "generate" or "generate_stream". As for
        `infer`, SageMaker gives the container 60 seconds, and accepts an answer of up to 6 MiB. `stream` has more time.

        Args:
            inputs: the inputs, as in `stream`.
            **options: custom parameters, the variant and more; `GenerateOptions` lists all options.

        Raises:
            ConfigurationError: as `stream` raises it.
            InvocationError: as `infer` raises it, with its subclasses, or the model returns no result or several
                results. With "generate", several results are a `ModelError`, which SageMaker counts as a success.
        """
        return self._generate(inputs, None, options)

    def _stream(self, inputs: Mapping[str, Any], contract: Contract | None, options: GenerateOptions) -> ResultStream:
        def send(target: Target) -> ResultStream:
            invocation, sent = Invocation.generating(target, inputs, options), time.monotonic()
            with foreign_errors_translated(invocation.where, STREAM_PERMISSION):
                response = cast("StreamingRuntime", self._runtime).invoke_endpoint_with_response_stream(
                    **invocation.arguments
                )
            return ResultStream(invocation, response, sent, contract)

        return self._renewing({}, send)

    def _generate(
        self, inputs: Mapping[str, Any], contract: Contract | None, options: GenerateOptions
    ) -> InferenceResult:
        def send(target: Target) -> InferenceResult:
            invocation = Invocation.generating(target, inputs, options)
            return invocation.generated(*_answer(self._runtime, invocation), contract)

        return self._renewing({}, send)

    def _renewing(self, options: TargetOptions, send: Callable[[Target], _T]) -> _T:
        """Send a request, and send it once more if its target is gone and another one replaces it."""
        target = self._target(options)
        try:
            return send(target)
        except InvocationError as error:
            if not is_gone(error) or not self._names.renew(target):
                raise
        return send(self._target(options))

    def _target(self, options: TargetOptions) -> Target:
        return self._names.target(options.get("ensemble"), options.get("target_model"))

    @takes(InferManyOptions)
    def infer_many(
        self,
        requests: Iterable[Mapping[str, Tensor]],
        *,
        max_batch_size: int,
        concurrency: int = 16,
        **options: Unpack[InferManyOptions],
    ) -> list[Answer]:
        """Combine many small requests into a few large ones, and return a result for each.

        Requests are sent together if their inputs have the same names, types and shapes. If the container returns an
        error for such a batch, the client sends its two halves again, until only the faulty request fails. A model may
        therefore receive a row more than once, so do not use this method for a model with state.

        By default, this method uses urllib3, which takes half as long as boto3, but supports no proxy or CA bundle that
        the environment sets. In such an environment, give the client your own `runtime`.

        Args:
            requests: the inputs of each request, as in `infer`, with the batch dimension.
            max_batch_size: how many rows are sent together; at most the `max_batch_size` of the model's `config.pbtxt`.
                With 1, each request is sent alone, and needs no batch dimension.
            concurrency: how many requests the client sends at the same time.
            **options: options of `infer` that apply to each request; `InferManyOptions` lists them.

        Returns:
            For each request, in the order of `requests`, the result or the error that `infer` would raise.

        Raises:
            ConfigurationError: `max_batch_size` or `concurrency` is not a whole number of at least 1; or the
                environment sets a proxy or a CA bundle, and you have not given the client a `runtime`.
        """
        options["outputs"] = listed(options.get("outputs"))
        return self._infer_many(requests, max_batch_size, concurrency, arrays_of, _unchanged, options)

    def _infer_many(
        self,
        requests: Iterable[Mapping[str, Any]],
        max_batch_size: int,
        concurrency: int,
        arrays: Callable[[Mapping[str, Any]], Arrays],
        check: Callable[[InferenceResult], InferenceResult],
        options: InferManyOptions,
    ) -> list[Answer]:
        check_bounds(max_batch_size, concurrency)
        work = Batches.of(requests, max_batch_size, arrays)
        runtime = self._runtime_for_many(concurrency)

        def answers(batch: Batch) -> list[Answer]:
            try:
                return batch.divide(check(self._infer(batch.inputs(), None, runtime, **options)))
            except CdkTritonError as error:
                if not can_be_halved(error, batch):
                    return [error] * len(batch.numbers)
            return [answer for half in batch.halves() for answer in answers(half)]

        with ThreadPoolExecutor(concurrency) as pool:
            return work.in_order(pool.map(answers, work.batches))

    def _runtime_for_many(self, concurrency: int) -> SageMakerRuntime:
        if not self._is_default:
            return self._runtime
        if self._direct is None or self._direct.connections < concurrency:
            self._direct = DirectRuntime(concurrency)
        return self._direct

    @takes(SubmitOptions)
    def submit(self, inputs: Inputs, **options: Unpack[SubmitOptions]) -> AsyncResult:
        """Send a request to an asynchronous endpoint, and return before the response exists.

        A request of up to 128,000 bytes is sent inline. A larger request, of up to 1 GiB (AWS writes 1 GB), is first
        uploaded to a new key below `input_location`. If the installed boto3 cannot send requests inline, all requests
        are uploaded.

        Args:
            inputs: the inputs of the request, as in `infer`.
            **options: the requested outputs, the time limits and more; `SubmitOptions` lists all options.

        Returns:
            The request; its method `result` waits for the response.

        Raises:
            ConfigurationError: an input cannot be sent, a time is out of its range, or boto3 rejects an argument; or
                the request must be uploaded, but the client has no `input_location`.
            PayloadTooLargeError: the request is larger than SageMaker accepts; nothing was sent.
            InvocationTimeoutError: the client got no connection or no response in time; the request may be in the
                queue.
            InvocationError: any other failure of SageMaker, S3 or the network.
        """
        request = Submission.of(self.endpoint_name, inputs, options)
        s3 = self._s3
        if request.is_inline(self._names, takes_body=takes_body(self._runtime)):
            source: dict[str, Any] = {"Body": request.body}
        else:
            s3 = default_client("s3") if s3 is None else s3
            source = {"InputLocation": request.upload(s3, self._names.input_location)}
        with foreign_errors_translated(request.where, PERMISSION):
            answer = cast("AsyncRuntime", self._runtime).invoke_endpoint_async(**request.arguments(source))
        return request.result(answer, s3)


def _answer(runtime: SageMakerRuntime, invocation: Invocation) -> tuple[Mapping[str, Any], bytes]:
    with foreign_errors_translated(invocation.where):
        response = runtime.invoke_endpoint(**invocation.arguments)
        return response, response["Body"].read()


def _unchanged(result: InferenceResult) -> InferenceResult:
    return result
