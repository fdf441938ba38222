"""`TritonClient`: one endpoint, one method."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cdk_triton._wording import quoted
from cdk_triton.client import payload
from cdk_triton.client.runtime import SageMakerRuntime, default_runtime, foreign_errors_translated
from cdk_triton.errors import ConfigurationError, PayloadTooLargeError
from cdk_triton.sagemaker.limits import MAX_INVOCATION_BYTES, MAX_NAME_LENGTH, NAME_PATTERN

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

    Raises:
        ConfigurationError: `endpoint_name` cannot be one, or no AWS region is configured.
    """

    def __init__(self, endpoint_name: str, runtime: SageMakerRuntime | None = None) -> None:
        if re.fullmatch(NAME_PATTERN, endpoint_name) is None:
            raise ConfigurationError(
                f"{quoted(endpoint_name)} is not the name of an endpoint: give the name, not the ARN or a CDK token "
                f"(1 to {MAX_NAME_LENGTH} letters, digits and hyphens)"
            )
        self._endpoint_name = endpoint_name
        self._runtime = default_runtime() if runtime is None else runtime

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
