"""The values that the control plane, the front server and the hosting exchange.

The control plane (`cdk_triton_local.endpoints.operations`) turns SageMaker's Model, EndpointConfig and Endpoint into
one `Endpoint` value and hands it to an `EndpointHost`. The front server (`cdk_triton_local.front.server`) turns an HTTP
request into an `Invocation` and sends back the `Response`. Nothing here starts a process or opens a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from cdk_triton.sagemaker import limits

__all__ = [
    "AsyncConfig",
    "BrokenStreamError",
    "Component",
    "Container",
    "DataCapture",
    "Endpoint",
    "EndpointHost",
    "Invocation",
    "Response",
    "Shift",
    "StreamedResponse",
    "Variant",
    "all_at_once",
]


@dataclass(frozen=True)
class Container:
    """The container definition of a SageMaker Model.

    Attributes:
        image: the image URI; recorded, never pulled.
        mode: SageMaker's `Mode`.
        model_data_url: an `s3://` URL; of one `.tar.gz` for a single model, of a prefix for several models or for the
            files of one.
        environment: the container's environment variables.
        model_cache: False where `MultiModelConfig.ModelCacheSetting` is `Disabled`: no model stays loaded.
        compressed: False where `ModelDataSource` names the prefix of a single model's files.
        role: the ARN of the model's execution role, with which the endpoint calls other services.
    """

    image: str
    mode: Literal["SingleModel", "MultiModel"]
    model_data_url: str
    environment: Mapping[str, str]
    model_cache: bool = True
    compressed: bool = True
    role: str = ""


@dataclass(frozen=True)
class Variant:
    """A production variant, which gets `weight / sum of all weights` of the requests that name no variant; or a shadow.

    A shadow gets copies of `weight / weight of the production variant` of the requests, all of them at most. For a
    variant with instance pools this is the pool that serves, and `in_pool` is true.
    """

    name: str
    weight: float
    instance_type: str
    container: Container
    in_pool: bool = False


@dataclass(frozen=True)
class Component:
    """An inference component of an endpoint without a model.

    Attributes:
        name: its name.
        endpoint: the endpoint's name.
        variant: the name of the endpoint's variant.
        container: what each copy runs.
    """

    name: str
    endpoint: str
    variant: str
    container: Container


@dataclass(frozen=True)
class DataCapture:
    """Which requests and answers of an endpoint are kept, and where.

    Attributes:
        url: an `s3://` URL; keys begin with its path.
        percentage: the share of the invocations that are captured, in percent.
        inputs: whether requests are kept.
        outputs: whether answers are kept.
        encodings: content type to `JSON` or `CSV`; bodies of other types are kept as BASE64.
    """

    url: str
    percentage: int
    inputs: bool
    outputs: bool
    encodings: Mapping[str, str]


@dataclass(frozen=True)
class AsyncConfig:
    """The way in which an asynchronous endpoint handles its requests.

    Attributes:
        output: an `s3://` URL below which answers are stored.
        failures: an `s3://` URL below which error messages are stored.
        success_topic: the ARN of the topic that gets a notification of each answer.
        error_topic: the ARN of the topic that gets a notification of each failure.
        concurrency: requests that an instance gets at a time.
    """

    output: str
    failures: str | None
    success_topic: str | None
    error_topic: str | None
    concurrency: int | None


@dataclass(frozen=True)
class Endpoint:
    """The state of an endpoint after a deployment.

    An endpoint without variants hosts inference components.
    """

    name: str
    config_name: str
    variants: tuple[Variant, ...]
    shadows: tuple[Variant, ...] = ()
    capture: DataCapture | None = None
    asynchronous: AsyncConfig | None = None


@dataclass(frozen=True)
class Invocation:
    """A request to `POST /endpoints/<endpoint>/invocations`.

    Attributes:
        endpoint: the endpoint's name, unquoted.
        headers: the request's headers; every key in lower case.
        body: the whole request body.
        seconds: how long the container may take.
        largest: the maximum size of the request and of the answer, in bytes.
    """

    endpoint: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float = limits.MAX_INVOCATION_SECONDS
    largest: int = limits.MAX_INVOCATION_BYTES


@dataclass(frozen=True)
class Response:
    """The answer to the caller; the HTTP server adds `Content-Length`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BrokenStreamError(Exception):
    """A streamed answer ends before its last part: SageMaker's ModelStreamError.

    Attributes:
        code: its `ErrorCode`.
    """

    def __init__(self, text: str, code: Literal["ModelInvocationTimeExceeded", "StreamBroken"]) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class StreamedResponse:
    """A successful answer that arrives in parts.

    Attributes:
        headers: those of the answer; its content type is that of the container.
        parts: the bytes of the container as they arrive. The iterator raises `BrokenStreamError`.
        close: ends the request, also before the last part. Who gets this answer has to call it.
    """

    headers: Mapping[str, str]
    parts: Iterator[bytes]
    close: Callable[[], None]


Shift = Callable[[Callable[[float], None]], None]
"""Moves the requests to new servers: gets a function that sends a share of them there, and returns when all may move.
"""


def all_at_once(move: Callable[[float], None]) -> None:
    """A `Shift` without steps."""


class EndpointHost(Protocol):
    """Runs endpoints. Every method can be called from any thread."""

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        """Create or update `endpoint`, and return when it is in service.

        An update is blue/green: the old servers answer until the new ones are ready, and stay if these cannot start.

        Args:
            endpoint: the endpoint as it should be.
            shift: called when the new servers of an update are ready. If it fails, the old servers stay.

        Raises:
            LocalError: the endpoint cannot be served; the message has the reason.
        """

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        """Change the weights of an endpoint's variants, by name; nothing happens if there is no such endpoint."""

    def remove(self, name: str) -> None:
        """Stop the endpoint's servers; nothing happens if there is no such endpoint."""

    def place(self, component: Component, copies: int) -> None:
        """Bring a component of a deployed endpoint to a number of copies, and return when they answer.

        Copies of a changed container replace the old ones when they are ready.

        Raises:
            LocalError: a copy cannot be served; the old copies stay.
        """

    def withdraw(self, name: str) -> None:
        """Stop the copies of a component; nothing happens if there is no such component."""

    def invoke(self, invocation: Invocation) -> Response:
        """Answer as `sagemaker-runtime` does; a failure is SageMaker's error response, never an exception."""

    def stream(self, invocation: Invocation) -> Response | StreamedResponse:
        """Answer InvokeEndpointWithResponseStream; a failure before the first part is an error response."""

    def close(self) -> None:
        """Stop everything."""
