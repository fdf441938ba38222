"""`TritonClient`: one endpoint, `infer` for a real-time one and `submit` for an asynchronous one."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, cast

from cdk_triton._wording import quoted
from cdk_triton.client import objects, payload
from cdk_triton.client.async_result import AsyncResult
from cdk_triton.client.runtime import (
    AsyncRuntime,
    SageMakerRuntime,
    default_client,
    default_runtime,
    foreign_errors_translated,
    takes_body,
)
from cdk_triton.errors import ConfigurationError, PayloadTooLargeError
from cdk_triton.sagemaker.limits import (
    ASYNC_SECONDS,
    MAX_ASYNC_BYTES,
    MAX_ASYNC_SECONDS,
    MAX_INLINE_BYTES,
    MAX_INVOCATION_BYTES,
    MAX_NAME_LENGTH,
    MAX_QUEUE_SECONDS,
    MIN_QUEUE_SECONDS,
    NAME_PATTERN,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tritonclient.http import InferInput, InferRequestedOutput

    from cdk_triton.client.tensors import Tensor

__all__ = ["TritonClient"]


class TritonClient:
    """Invokes one SageMaker endpoint whose container is Triton.

    A request is sent once and never again by this class: a model may be stateful, and after a timeout nobody knows
    whether it ran. A `runtime` of your own keeps its own retry configuration (botocore's default repeats a request
    after most failures). The client may be shared between threads.

    Args:
        endpoint_name: the name of the endpoint, not its ARN.
        runtime: a boto3 `sagemaker-runtime` client. By default one is made from the environment, with a read timeout
            of 70 seconds (SageMaker gives a container 60) and without retries.
        input_location: the S3 URI below which `submit` uploads requests that are too large for the call itself, as
            the parameter `async/input` of the endpoint has it.
        s3: a boto3 `s3` client for asynchronous requests. By default one is made from the environment.

    Raises:
        ConfigurationError: `endpoint_name` cannot be one, `input_location` is not an S3 URI, or no AWS region is
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
        if re.fullmatch(NAME_PATTERN, endpoint_name) is None:
            raise ConfigurationError(
                f"{quoted(endpoint_name)} is not the name of an endpoint: give the name, not the ARN or a CDK token "
                f"(1 to {MAX_NAME_LENGTH} letters, digits and hyphens)"
            )
        self._endpoint_name = endpoint_name
        self._input = None if input_location is None else objects.location(input_location)
        self._runtime = default_runtime() if runtime is None else runtime
        self._s3 = s3

    @classmethod
    def from_parameters(
        cls, path: str, runtime: SageMakerRuntime | None = None, *, s3: Any = None, ssm: Any = None
    ) -> TritonClient:
        """Make a client of what an endpoint with `ssm_parameter_path` has in the Parameter Store.

        Args:
            path: the endpoint's `ssm_parameter_path`.
            runtime: as for the class.
            s3: as for the class.
            ssm: a boto3 `ssm` client. By default one is made from the environment.

        Raises:
            ConfigurationError: there is no parameter `endpoint-name` below the path, or no AWS region is configured.
            InvocationError: the caller may not read the parameters, or the service failed.
        """
        names = {"name": f"{path}/endpoint-name", "input": f"{path}/async/input"}
        client = default_client("ssm") if ssm is None else ssm
        with foreign_errors_translated(f"parameters below '{path}'", "ssm:GetParameters on them"):
            answer = client.get_parameters(Names=list(names.values()))
        found = {each["Name"]: each["Value"] for each in answer["Parameters"]}
        if names["name"] not in found:
            raise ConfigurationError(
                f"the Parameter Store has no {names['name']}: give the ssm_parameter_path of a TritonEndpoint, and its "
                "region"
            )
        return cls(found[names["name"]], runtime, input_location=found.get(names["input"]), s3=s3)

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint."""
        return self._endpoint_name

    def infer(
        self,
        inputs: Mapping[str, Tensor | InferInput] | Iterable[InferInput],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        target_model: str | None = None,
        target_variant: str | None = None,
        inference_component: str | None = None,
        binary: bool = True,
        request_id: str = "",
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> payload.InferenceResult:
        """Run one inference and return every output, or those asked for.

        Args:
            inputs: an array, nested lists of text, or a tritonclient `InferInput` for each input tensor, by name; or
                `InferInput`s alone. The shape includes the batch dimension. `str` is sent as UTF-8; an array of
                `bytes` that may end in zero bytes must have `dtype=object`: numpy strips them from its `S` types.
            outputs: the names of the wanted outputs (or tritonclient's `InferRequestedOutput`s); all by default.
            target_model: the archive to ask on a multi-model endpoint: what `TritonMultiModel.target_model(…)` says.
            target_variant: the production variant to ask; by default SageMaker chooses by the variants' weights.
            inference_component: the component to ask on an endpoint with components: `TritonComponent.component_name`.
            binary: send and ask for binary tensors. With False both directions are JSON, which is readable, several
                times larger and slower, and cannot carry FP16, BF16 or bytes that are not UTF-8.
            request_id: returned as `InferenceResult.request_id`, and written into Triton's trace and verbose log.
            parameters: custom parameters of the request, for models that read them.

        Raises:
            ConfigurationError: an input cannot be sent, or boto3 refuses an argument.
            PayloadTooLargeError: the request body is larger than 6,291,456 bytes; nothing was sent.
            ModelError: the container answered with an error; the message holds Triton's own words.
            NoCapacityError: the component has no copy, for example because it has scaled to zero; call again later.
            ModelNotReadyError: a multi-model endpoint is still loading the target model; call again.
            InvocationTimeoutError: no connection or no answer in time.
            InvocationError: anything else that SageMaker, the network or the answer's format did wrong.
        """
        body, content_type = payload.encode(
            inputs, outputs, binary=binary, request_id=request_id, parameters=parameters
        )
        asked = {"target model": target_model, "component": inference_component}
        where = "".join(
            [f"endpoint '{self._endpoint_name}'", *(f", {what} '{name}'" for what, name in asked.items() if name)]
        )
        if len(body) > MAX_INVOCATION_BYTES:
            raise PayloadTooLargeError(
                f"the request to {where} has {len(body):,} bytes, and SageMaker accepts {MAX_INVOCATION_BYTES:,}: "
                + ("" if binary else "leave binary=True, or ")
                + "send fewer rows or smaller tensors per request",
                size=len(body),
                limit=MAX_INVOCATION_BYTES,
            )
        arguments = {"EndpointName": self._endpoint_name, "Body": body, "ContentType": content_type}
        if target_model is not None:
            arguments["TargetModel"] = target_model
        if target_variant is not None:
            arguments["TargetVariant"] = target_variant
        if inference_component is not None:
            arguments["InferenceComponentName"] = inference_component
        with foreign_errors_translated(where):
            response = self._runtime.invoke_endpoint(**arguments)
            answer = response["Body"].read()
        return payload.decode(
            answer, response.get("ContentType", ""), variant=response.get("InvokedProductionVariant"), where=where
        )

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
        """Send a request to an asynchronous endpoint, and return before it is answered.

        A request of up to 128,000 bytes is part of the call. A larger one, of up to 1 GiB, is uploaded first, under a
        key of its own below `input_location`. A boto3 that does not know bodies in this call yet uploads every request.

        Args:
            inputs: as for `infer`.
            outputs: as for `infer`.
            binary: as for `infer`. Triton has a limit for JSON, and none for binary tensors.
            request_id: as for `infer`.
            parameters: as for `infer`.
            queue_seconds: how long the request may wait in the queue, 60 to 21,600 seconds.
            invocation_seconds: how long the container may take, 1 to 3,600 seconds.

        Returns:
            The request; its method `result` waits for the answer.

        Raises:
            ConfigurationError: an input cannot be sent, a time is out of its range, the request is too large for the
                call and the client has no `input_location`, or boto3 refuses an argument.
            PayloadTooLargeError: the request is larger than SageMaker accepts; nothing was sent.
            InvocationTimeoutError: no connection or no answer in time; the request may be in the queue.
            InvocationError: anything else that SageMaker, S3 or the network did wrong.
        """
        _check_seconds("queue_seconds", queue_seconds, MIN_QUEUE_SECONDS, MAX_QUEUE_SECONDS)
        _check_seconds("invocation_seconds", invocation_seconds, 1, MAX_ASYNC_SECONDS)
        body, content_type = payload.encode(
            inputs, outputs, binary=binary, request_id=request_id, parameters=parameters
        )
        where, inference_id = f"endpoint '{self._endpoint_name}'", str(uuid.uuid4())
        s3 = self._s3
        if len(body) <= MAX_INLINE_BYTES and (self._input is None or takes_body(self._runtime)):
            source: dict[str, Any] = {"Body": body}
        else:
            s3 = default_client("s3") if s3 is None else s3
            source = {"InputLocation": self._upload(s3, body, content_type, inference_id, where)}
        with foreign_errors_translated(where, "sagemaker:InvokeEndpointAsync on this endpoint"):
            answer = cast("AsyncRuntime", self._runtime).invoke_endpoint_async(
                EndpointName=self._endpoint_name,
                InferenceId=inference_id,
                ContentType=content_type,
                RequestTTLSeconds=queue_seconds,
                InvocationTimeoutSeconds=invocation_seconds,
                **source,
            )
        return AsyncResult(
            self._endpoint_name,
            answer.get("InferenceId", inference_id),
            answer["OutputLocation"],
            answer.get("FailureLocation"),
            queue_seconds=queue_seconds,
            invocation_seconds=invocation_seconds,
            s3=s3,
        )

    def _upload(self, s3: Any, body: bytes, content_type: str, inference_id: str, where: str) -> str:
        """Put a request into S3 and return its URI."""
        if len(body) > MAX_ASYNC_BYTES:
            raise PayloadTooLargeError(
                f"the request to {where} has {len(body):,} bytes, and an asynchronous endpoint reads "
                f"{MAX_ASYNC_BYTES:,}: send fewer rows or smaller tensors per request",
                size=len(body),
                limit=MAX_ASYNC_BYTES,
            )
        if self._input is None:
            raise ConfigurationError(
                f"the request to {where} has {len(body):,} bytes, and a call takes {MAX_INLINE_BYTES:,}: give the "
                "client input_location=, or make it by TritonClient.from_parameters, so that it can upload the request"
            )
        place = objects.Location(self._input.bucket, f"{self._input.key}/{inference_id}")
        objects.put(s3, place, body, content_type, where=where)
        return str(place)


def _check_seconds(name: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigurationError(f"{name} is {value!r}: SageMaker takes whole seconds, {least} to {most:,}")
