"""One InvokeEndpoint, apart from sending it: the arguments of the call, and the result of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from cdk_triton.client import generation, payload
from cdk_triton.client.identifiers import service_texts
from cdk_triton.errors import PayloadTooLargeError
from cdk_triton.sagemaker.limits import MAX_INVOCATION_BYTES

if TYPE_CHECKING:
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.names import Target
    from cdk_triton.client.options import GenerateOptions, InferOptions
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.tensors import Inputs

__all__ = ["Invocation"]


@dataclass(frozen=True)
class Invocation:
    """A request to one target.

    Attributes:
        where: endpoint and target, for messages.
        arguments: the arguments of boto3's `invoke_endpoint`.
    """

    where: str
    arguments: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        target: Target,
        inputs: Inputs,
        options: InferOptions,
        step: SequenceStep | None = None,
    ) -> Invocation:
        """Write a request; `step` is its place in a sequence.

        Raises:
            ConfigurationError: an input, an output, a parameter or an identifier cannot be sent.
            PayloadTooLargeError: the body is larger than SageMaker accepts.
        """
        body, content_type = payload.encode(inputs, options, step)
        return cls._of_body(target, body, content_type, options)

    @classmethod
    def generating(cls, target: Target, inputs: Mapping[str, Any], options: GenerateOptions) -> Invocation:
        """Write a request in Triton's generate protocol.

        Raises:
            ConfigurationError: an input or a parameter cannot be sent.
            PayloadTooLargeError: the body is larger than SageMaker accepts.
        """
        return cls._of_body(target, generation.encode(inputs, options), generation.CONTENT_TYPE, options)

    @classmethod
    def _of_body(
        cls, target: Target, body: bytes, content_type: str, options: InferOptions | GenerateOptions
    ) -> Invocation:
        inference_component = options.get("inference_component")
        asked = {"target model": target.target_model, "component": inference_component}
        where = "".join(
            [f"endpoint '{target.endpoint_name}'", *(f", {what} '{name}'" for what, name in asked.items() if name)]
        )
        if len(body) > MAX_INVOCATION_BYTES:
            raise PayloadTooLargeError(
                f"the request to {where} has {len(body):,} bytes, but SageMaker accepts at most "
                f"{MAX_INVOCATION_BYTES:,}: "
                + ("" if options.get("binary", True) else "keep binary=True, or ")
                + "send fewer rows or smaller tensors per request",
                size=len(body),
                limit=MAX_INVOCATION_BYTES,
            )
        arguments: dict[str, Any] = {"EndpointName": target.endpoint_name, "Body": body, "ContentType": content_type}
        more = {
            "TargetModel": target.target_model,
            "TargetVariant": options.get("target_variant"),
            "InferenceComponentName": inference_component,
            **service_texts(options),
        }
        return cls(where, arguments | {name: value for name, value in more.items() if value is not None})

    def generated(
        self, response: Mapping[str, Any], answer: bytes, contract: Contract | None
    ) -> payload.InferenceResult:
        """Return the one result of a whole answer to a request in the generate protocol.

        Raises:
            ModelError: the answer is an error of the model.
            InvocationError: there is not one result, or the body is not an answer of Triton.
        """
        reader = self.reader(response, contract)
        return generation.one_result(self.where, chain(reader.feed(answer), reader.end()))

    def reader(self, response: Mapping[str, Any], contract: Contract | None) -> generation.AnswerReader:
        """Return what reads the answer to a request in the generate protocol."""
        variant = response.get("InvokedProductionVariant")
        return generation.AnswerReader(self.where, response.get("ContentType", ""), variant, contract)

    def result(self, response: Mapping[str, Any], answer: bytes) -> payload.InferenceResult:
        """Return what the model answered.

        Raises:
            InvocationError: the body is not an inference response of Triton.
        """
        return payload.decode(
            answer,
            response.get("ContentType", ""),
            variant=response.get("InvokedProductionVariant"),
            where=self.where,
        )
