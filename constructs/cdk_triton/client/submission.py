"""One InvokeEndpointAsync, apart from sending it: where the request goes, and the result that is waited for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdk_triton.client import objects, payload
from cdk_triton.client.async_result import AsyncResult
from cdk_triton.client.identifiers import service_texts
from cdk_triton.errors import ConfigurationError, PayloadTooLargeError
from cdk_triton.sagemaker.limits import (
    ASYNC_SECONDS,
    MAX_ASYNC_BYTES,
    MAX_ASYNC_SECONDS,
    MAX_INLINE_BYTES,
    MAX_QUEUE_SECONDS,
    MIN_QUEUE_SECONDS,
)

if TYPE_CHECKING:
    from cdk_triton.client.names import Names
    from cdk_triton.client.options import SubmitOptions
    from cdk_triton.client.tensors import Inputs

__all__ = ["PERMISSION", "Submission"]

PERMISSION = "sagemaker:InvokeEndpointAsync on this endpoint"


@dataclass(frozen=True)
class Submission:
    """A request to an asynchronous endpoint.

    Attributes:
        endpoint_name: the endpoint.
        body: the body of the request.
        content_type: the content type of the body.
        queue_seconds: how long the request may wait in the queue.
        invocation_seconds: how long the container may work on the request.
        texts: the identifier of the request, and the text for the container, as the service names them.
        name: the name of an uploaded request. Callers may use an `inference_id` twice, so it is another one.

    Raises:
        ConfigurationError: a time is out of its range.
    """

    endpoint_name: str
    body: bytes
    content_type: str
    queue_seconds: int
    invocation_seconds: int
    texts: Mapping[str, str]
    name: str

    @classmethod
    def of(cls, endpoint_name: str, inputs: Inputs, options: SubmitOptions) -> Submission:
        """Write a request.

        Raises:
            ConfigurationError: an input, an output, a parameter or an identifier cannot be sent, or a time is out of
                its range.
        """
        body, content_type = payload.encode(inputs, options)
        queue_seconds = options.get("queue_seconds", MAX_QUEUE_SECONDS)
        invocation_seconds = options.get("invocation_seconds", ASYNC_SECONDS)
        name = str(uuid.uuid4())
        texts = {"InferenceId": name, **service_texts(options)}
        return cls(endpoint_name, body, content_type, queue_seconds, invocation_seconds, texts, name)

    def __post_init__(self) -> None:
        _check_seconds("queue_seconds", self.queue_seconds, MIN_QUEUE_SECONDS, MAX_QUEUE_SECONDS)
        _check_seconds("invocation_seconds", self.invocation_seconds, 1, MAX_ASYNC_SECONDS)

    @property
    def where(self) -> str:
        """The endpoint, for messages."""
        return f"endpoint '{self.endpoint_name}'"

    def is_inline(self, names: Names, *, takes_body: bool) -> bool:
        """Whether the request can be part of the call."""
        return len(self.body) <= MAX_INLINE_BYTES and (names.input_location is None or takes_body)

    def arguments(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of boto3's `invoke_endpoint_async`.

        Args:
            source: the argument that locates the request: `Body` or `InputLocation`.
        """
        return {
            "EndpointName": self.endpoint_name,
            "ContentType": self.content_type,
            "RequestTTLSeconds": self.queue_seconds,
            "InvocationTimeoutSeconds": self.invocation_seconds,
            **self.texts,
            **source,
        }

    def upload(self, s3: Any, place: objects.Location | None) -> str:
        """Put the request into S3 and return its URI.

        Args:
            s3: a boto3 client.
            place: the bucket, and the prefix of keys.

        Raises:
            ConfigurationError: `place` is None.
            PayloadTooLargeError: the request is larger than an asynchronous endpoint accepts.
            InvocationError: the request could not be uploaded.
        """
        if len(self.body) > MAX_ASYNC_BYTES:
            raise PayloadTooLargeError(
                f"the request to {self.where} has {len(self.body):,} bytes, but an asynchronous endpoint reads at most "
                f"{MAX_ASYNC_BYTES:,}: send fewer rows or smaller tensors per request",
                size=len(self.body),
                limit=MAX_ASYNC_BYTES,
            )
        if place is None:
            raise ConfigurationError(
                f"the request to {self.where} has {len(self.body):,} bytes, but a call takes {MAX_INLINE_BYTES:,} "
                "at most: give the client input_location=, or make the client by from_parameters, so that it can "
                "upload the request"
            )
        own = objects.Location(place.bucket, f"{place.key}/{self.name}")
        objects.put(s3, own, self.body, self.content_type, where=self.where)
        return str(own)

    def result(self, answer: Mapping[str, Any], s3: Any) -> AsyncResult:
        """Return the result that can be waited for."""
        return AsyncResult(
            self.endpoint_name,
            answer.get("InferenceId", self.texts["InferenceId"]),
            answer["OutputLocation"],
            answer.get("FailureLocation"),
            queue_seconds=self.queue_seconds,
            invocation_seconds=self.invocation_seconds,
            s3=s3,
        )


def _check_seconds(name: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigurationError(f"{name} is {value!r}: SageMaker takes whole seconds, {least} to {most:,}")
