"""`TritonClient`: one endpoint, `infer` for a real-time one and `submit` for an asynchronous one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from cdk_triton._wording import quoted
from cdk_triton.client import objects, payload
from cdk_triton.client.contract import Contract
from cdk_triton.client.direct_runtime import DirectRuntime
from cdk_triton.client.invocation import Invocation
from cdk_triton.client.many import Answer, Batch, Batches, arrays_of, can_be_halved, check_bounds
from cdk_triton.client.names import FixedNames, Names, ParameterNames, is_gone
from cdk_triton.client.repository_client import RepositoryClient
from cdk_triton.client.runtime import (
    AsyncRuntime,
    SageMakerRuntime,
    default_client,
    default_runtime,
    foreign_errors_translated,
    takes_body,
)
from cdk_triton.client.submission import PERMISSION, Submission
from cdk_triton.errors import CdkTritonError, ConfigurationError, InvocationError
from cdk_triton.sagemaker.limits import ASYNC_SECONDS, MAX_NAME_LENGTH, MAX_QUEUE_SECONDS, NAME_PATTERN

if TYPE_CHECKING:
    from tritonclient.http import InferInput, InferRequestedOutput

    from cdk_triton.client.async_result import AsyncResult
    from cdk_triton.client.many import Arrays
    from cdk_triton.client.tensors import Tensor
    from cdk_triton.triton import ModelRepository

__all__ = ["MAX_AGE_SECONDS", "TritonClient", "fixed_names"]

MAX_AGE_SECONDS = 60.0
"""How old the names of the Parameter Store get before they are refreshed."""


class TritonClient:
    """Invokes one SageMaker endpoint whose container is Triton.

    This class sends each request once, except as `from_parameters` and `infer_many` describe. It does not retry,
    because a model may be stateful, and because the model may have run even if the request timed out. A `runtime` of
    your own keeps its own retry configuration (botocore's default repeats a request after most failures). Threads may
    share a client.

    Args:
        endpoint_name: the name of the endpoint, not its ARN.
        runtime: a boto3 `sagemaker-runtime` client. By default the class makes one from the environment, with a read
            timeout of 70 seconds and without retries (SageMaker gives a container 60 seconds).
        input_location: the S3 URI below which `submit` uploads requests that are too large for the call itself. The
            endpoint's parameter `async/input` contains this URI.
        s3: a boto3 `s3` client for asynchronous requests. By default the class makes one from the environment.

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
        self._names: Names = fixed_names(endpoint_name, input_location)
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
        """Make a client from the parameters that an endpoint with `ssm_parameter_path` has in the Parameter Store.

        `infer(…, ensemble=…)` finds the target model by the name of the ensemble. The client caches the names, and
        refreshes them in the background. If SageMaker rejects a request because the endpoint or the target model may be
        gone, the client refreshes the names at once. If the client then finds another name, it sends the request again.
        If a refresh fails, the client uses the last known names and logs a warning.

        Args:
            path: the endpoint's `ssm_parameter_path`.
            runtime: as for the class.
            s3: as for the class.
            ssm: a boto3 `ssm` client. By default the method makes one from the environment.
            max_age: seconds after which the next use of a name starts a refresh in the background. That use gets the
                old name, because a replaced target model stays callable. But the client reads the name of a
                published ensemble again before that use.

        Raises:
            ConfigurationError: there is no parameter `endpoint-name` below the path, `max_age` is negative, or no AWS
                region is configured.
            InvocationError: the caller may not read the parameters, or the service failed.
        """
        names = ParameterNames(path, default_client("ssm") if ssm is None else ssm, max_age, s3=s3)
        client = cls(names.endpoint_name, runtime, s3=s3)
        client._names = names
        return client

    def for_repository(
        self,
        repository: ModelRepository,
        *,
        ensemble: str | None = None,
        target_model: str | None = None,
        target_variant: str | None = None,
        inference_component: str | None = None,
    ) -> RepositoryClient:
        """Return a client that checks requests against the repository's `config.pbtxt` before it sends the requests.

        Args:
            repository: the repository that the endpoint serves.
            ensemble: as for `infer`.
            target_model: as for `infer`.
            target_variant: as for `infer`.
            inference_component: as for `infer`.

        Raises:
            ConfigurationError: the repository does not determine which model callers invoke, or the model's
                configuration does not have inputs and outputs.
            ModelConfigError: the model's configuration cannot be read.
        """
        target = {
            "ensemble": ensemble,
            "target_model": target_model,
            "target_variant": target_variant,
            "inference_component": inference_component,
        }
        return RepositoryClient(self, Contract.of(repository), target)

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint."""
        return self._names.endpoint_name

    def infer(
        self,
        inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        ensemble: str | None = None,
        target_model: str | None = None,
        target_variant: str | None = None,
        inference_component: str | None = None,
        binary: bool = True,
        request_id: str = "",
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> payload.InferenceResult:
        """Run one inference and return every output, or those asked for.

        Args:
            inputs: a mapping from each input tensor's name to an array, nested lists of text, or tritonclient's
                `InferInput`; or an iterable of `InferInput`s alone. The shape includes the batch dimension. The client
                sends `str` as UTF-8. An array of `bytes` that may end in zero bytes must have `dtype=object`, because
                numpy strips zero bytes from its `S` types.
            outputs: the names of the wanted outputs (or tritonclient's `InferRequestedOutput`s); all by default.
            ensemble: the name of the ensemble to invoke on a multi-model endpoint: one of the stack, or a published
                one. This argument needs a client of `from_parameters`.
            target_model: the archive to invoke on a multi-model endpoint, as `TritonMultiModel.target_model(…)` returns
                it.
            target_variant: the production variant to invoke; by default SageMaker chooses by the variants' weights.
            inference_component: the component to invoke on an endpoint with components, as
                `TritonComponent.component_name` returns it.
            binary: whether to send and request binary tensors. With False, request and answer are JSON. JSON is
                readable, but several times larger and slower, and cannot contain FP16, BF16 or bytes that are not
                UTF-8.
            request_id: an identifier of your own. The result has this identifier as `InferenceResult.request_id`.
                Triton writes the identifier into its trace and its verbose log.
            parameters: custom parameters of the request, for models that read them.

        Raises:
            ConfigurationError: an input cannot be sent, or boto3 rejects an argument.
            PayloadTooLargeError: the request body is larger than 6,291,456 bytes; nothing was sent.
            ModelError: the container answered with an error; the message contains Triton's own words.
            NoCapacityError: the component has no copy, for example because it has scaled to zero; call again later.
            ModelNotReadyError: a multi-model endpoint is still loading the target model; call again.
            InvocationTimeoutError: the client got no connection or no answer in time.
            InvocationError: any other failure of SageMaker or the network, or an answer that cannot be read.
        """
        return self._infer(
            self._runtime,
            inputs,
            ensemble=ensemble,
            target_model=target_model,
            outputs=outputs,
            target_variant=target_variant,
            inference_component=inference_component,
            binary=binary,
            request_id=request_id,
            parameters=parameters,
        )

    def _infer(
        self,
        runtime: SageMakerRuntime,
        inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput],
        *,
        ensemble: str | None = None,
        target_model: str | None = None,
        **options: Any,
    ) -> payload.InferenceResult:
        target = self._names.target(ensemble, target_model)
        try:
            return _send(runtime, Invocation.of(target, inputs, **options))
        except InvocationError as error:
            if not is_gone(error) or not self._names.renew(target):
                raise
        return _send(runtime, Invocation.of(self._names.target(ensemble, target_model), inputs, **options))

    def infer_many(
        self,
        requests: Iterable[Mapping[str, Tensor]],
        *,
        max_batch_size: int,
        concurrency: int = 16,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        ensemble: str | None = None,
        target_model: str | None = None,
        target_variant: str | None = None,
        inference_component: str | None = None,
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> list[Answer]:
        """Run many small requests by sending them as few large ones.

        The client sends requests together if their inputs have the same names, types and shapes. If the container
        answers such a batch with an error, the client sends the halves of the batch again, until only the request at
        fault fails. So a model may get a row more than once: do not use this method for a model with state.

        Unless you gave the client a `runtime`, this method uses urllib3 instead of boto3, because urllib3 takes half
        the time. If the environment sets a proxy or a CA bundle, give the client a `runtime`.

        Args:
            requests: the inputs of each request, as for `infer`, with the batch dimension.
            max_batch_size: how many rows the client sends together, at most the `max_batch_size` of the model's
                `config.pbtxt`. With 1, the client sends each request alone, and a request does not need a batch
                dimension.
            concurrency: how many requests the client sends at a time.
            outputs: as for `infer`.
            ensemble: as for `infer`.
            target_model: as for `infer`.
            target_variant: as for `infer`.
            inference_component: as for `infer`.
            parameters: as for `infer`, for each request.

        Returns:
            A result or an error for each request, in the order of the requests. The errors are those that `infer` would
            raise.

        Raises:
            ConfigurationError: `max_batch_size` or `concurrency` is not a whole number of at least 1; or the
                environment sets a proxy or a CA bundle, but you did not give the client a `runtime`.
        """
        options = {
            "outputs": outputs if outputs is None or isinstance(outputs, str) else list(outputs),
            "ensemble": ensemble,
            "target_model": target_model,
            "target_variant": target_variant,
            "inference_component": inference_component,
            "parameters": parameters,
        }
        return self._infer_many(requests, max_batch_size, concurrency, arrays_of, _unchanged, options)

    def _infer_many(
        self,
        requests: Iterable[Mapping[str, Any]],
        max_batch_size: int,
        concurrency: int,
        arrays: Callable[[Mapping[str, Any]], Arrays],
        check: Callable[[payload.InferenceResult], payload.InferenceResult],
        options: Mapping[str, Any],
    ) -> list[Answer]:
        check_bounds(max_batch_size, concurrency)
        work = Batches.of(requests, max_batch_size, arrays)
        runtime = self._runtime_for_many(concurrency)

        def answers(batch: Batch) -> list[Answer]:
            try:
                return batch.divide(check(self._infer(runtime, batch.inputs(), **options)))
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

    def submit(
        self,
        inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        binary: bool = True,
        request_id: str = "",
        parameters: Mapping[str, str | int | bool] | None = None,
        queue_seconds: int = MAX_QUEUE_SECONDS,
        invocation_seconds: int = ASYNC_SECONDS,
    ) -> AsyncResult:
        """Send a request to an asynchronous endpoint, and return before the answer exists.

        A request of up to 128,000 bytes is part of the call. The client first uploads a larger request, of up to 1 GiB,
        to a new key below `input_location`. If the installed boto3 does not support bodies in this call, the client
        uploads every request.

        Args:
            inputs: as for `infer`.
            outputs: as for `infer`.
            binary: as for `infer`. Triton limits the size of JSON, but not the size of binary tensors.
            request_id: as for `infer`.
            parameters: as for `infer`.
            queue_seconds: how long the request may wait in the queue, 60 to 21,600 seconds.
            invocation_seconds: how long the container may work on the request, 1 to 3,600 seconds.

        Returns:
            The request; its method `result` waits for the answer.

        Raises:
            ConfigurationError: an input cannot be sent, a time is out of its range, or boto3 rejects an argument; or
                the request must be uploaded, but the client does not have an `input_location`.
            PayloadTooLargeError: the request is larger than SageMaker accepts; nothing was sent.
            InvocationTimeoutError: the client got no connection or no answer in time; the request may be in the queue.
            InvocationError: any other failure of SageMaker, S3 or the network.
        """
        body, content_type = payload.encode(
            inputs, outputs, binary=binary, request_id=request_id, parameters=parameters
        )
        request = Submission(self.endpoint_name, body, content_type, queue_seconds, invocation_seconds)
        s3 = self._s3
        if request.is_inline(self._names, takes_body=takes_body(self._runtime)):
            source: dict[str, Any] = {"Body": body}
        else:
            s3 = default_client("s3") if s3 is None else s3
            source = {"InputLocation": request.upload(s3, self._names.input_location)}
        with foreign_errors_translated(request.where, PERMISSION):
            answer = cast("AsyncRuntime", self._runtime).invoke_endpoint_async(**request.arguments(source))
        return request.result(answer, s3)


def fixed_names(endpoint_name: str, input_location: str | None) -> FixedNames:
    """Return the names that a caller gave.

    Raises:
        ConfigurationError: one cannot be a name or a location.
    """
    if not isinstance(endpoint_name, str) or re.fullmatch(NAME_PATTERN, endpoint_name) is None:
        raise ConfigurationError(
            f"{quoted(endpoint_name)} is not the name of an endpoint: give the name, not the ARN or a CDK token "
            f"(1 to {MAX_NAME_LENGTH} letters, digits and hyphens)"
        )
    return FixedNames(endpoint_name, None if input_location is None else objects.location(input_location))


def _send(runtime: SageMakerRuntime, invocation: Invocation) -> payload.InferenceResult:
    with foreign_errors_translated(invocation.where):
        response = runtime.invoke_endpoint(**invocation.arguments)
        body = response["Body"].read()
    return invocation.result(response, body)


def _unchanged(result: payload.InferenceResult) -> payload.InferenceResult:
    return result
