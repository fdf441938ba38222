"""Asynchronous endpoints of the local AWS: InvokeEndpointAsync, and an `EndpointHost` around another one.

Names, headers and limits are those of botocore's service model `sagemaker-runtime` 2017-05-13. The notifications are
those of "Check prediction results" in SageMaker's developer guide. AWS does not document the objects of answers and
error messages: here, an answer is stored as the container gave it, without its content type, and an error message is
SageMaker's text of a ModelError.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints.async_queue import AsyncQueue, AsyncRequest
from cdk_triton_local.endpoints.hosting import (
    AsyncConfig,
    Component,
    Endpoint,
    EndpointHost,
    Invocation,
    Response,
    Shift,
    StreamedResponse,
    Variant,
    all_at_once,
)

__all__ = ["AsyncHost", "async_of"]

_HEADER: Final = "x-amzn-sagemaker-"
_PASSED_ON: Final = {
    f"{_HEADER}content-type": "content-type",
    f"{_HEADER}accept": "accept",
    f"{_HEADER}custom-attributes": f"{_HEADER}custom-attributes",
}
_OUTPUT_EXTENSION: Final = re.compile(r"(?!s3:|https:)[a-zA-Z0-9!_.*'()/-]{1,512}")
_FILE_NAME: Final = re.compile(r"(?!.*\..*\.)[a-zA-Z0-9][a-zA-Z0-9\-_.]{0,31}")


def async_of(configuration: Mapping[str, Any]) -> AsyncConfig | None:
    """The asynchronous configuration, from the answer of DescribeEndpointConfig; None for a real-time endpoint."""
    asked = configuration.get("AsyncInferenceConfig")
    if not asked:
        return None
    output = asked.get("OutputConfig") or {}
    notified = output.get("NotificationConfig") or {}
    return AsyncConfig(
        output=output["S3OutputPath"].rstrip("/"),
        failures=str(output.get("S3FailurePath") or "").rstrip("/") or None,
        success_topic=notified.get("SuccessTopic"),
        error_topic=notified.get("ErrorTopic"),
        concurrency=(asked.get("ClientConfig") or {}).get("MaxConcurrentInvocationsPerInstance"),
    )


class _RejectedError(Exception): ...


class AsyncHost:
    """An `EndpointHost` around another, which keeps the queues of asynchronous endpoints.

    Args:
        host: runs the endpoints.
        client: makes a boto3 client of a service that calls with the execution role of the endpoint's model.
        instances: the number of instances of an endpoint; None if there is no such endpoint.
        record: gets the values of metrics: endpoint, variant (empty for those of the endpoint), name, value.
        now: returns the time, in seconds since 1970.
        log: gets one line per event.
        region: the region that notifications name.
    """

    def __init__(
        self,
        host: EndpointHost,
        *,
        client: Callable[[str, str], Any],
        instances: Callable[[str], int | None],
        record: Callable[[str, str, str, float], None],
        now: Callable[[], float],
        log: Callable[[str], None],
        region: str,
    ) -> None:
        self._now = now
        self._host = host
        self._client = client
        self._instances = instances
        self._record = record
        self._log = log
        self._region = region
        self._queues: dict[str, AsyncQueue] = {}
        self._variants: dict[str, Variant] = {}

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        """Create or update an endpoint; see `EndpointHost.deploy`. An update keeps the requests in the queue."""
        self._host.deploy(endpoint, shift)
        name, config = endpoint.name, endpoint.asynchronous
        if config is None:
            self._drop(name)
            return
        self._variants[name] = endpoint.variants[0]
        if name in self._queues:
            self._queues[name].config = config
        else:
            self._queues[name] = AsyncQueue(
                name,
                config,
                lambda: self._instances(name) or 0,
                self._answer_and_store,
                lambda metric, value: self._record(name, "", metric, value),
                self._now,
            )

    def report(self) -> None:
        """Record the metrics of the queues at this moment."""
        for queue in list(self._queues.values()):
            queue.report()

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        """Change the weights of variants; see `EndpointHost.set_weights`."""
        self._host.set_weights(name, weights)

    def place(self, component: Component, copies: int) -> None:
        """Bring a component to a number of copies; see `EndpointHost.place`."""
        self._host.place(component, copies)

    def withdraw(self, name: str) -> None:
        """Stop a component; see `EndpointHost.withdraw`."""
        self._host.withdraw(name)

    def remove(self, name: str) -> None:
        """Stop an endpoint and drop its queue; see `EndpointHost.remove`."""
        self._drop(name)
        self._host.remove(name)

    def invoke(self, invocation: Invocation) -> Response:
        """Answer InvokeEndpoint; see `EndpointHost.invoke`. An asynchronous endpoint rejects it; the text is ours."""
        return self._rejection_of(invocation, "InvokeEndpoint") or self._host.invoke(invocation)

    def stream(self, invocation: Invocation) -> Response | StreamedResponse:
        """Answer InvokeEndpointWithResponseStream, as `invoke` does."""
        return self._rejection_of(invocation, "InvokeEndpointWithResponseStream") or self._host.stream(invocation)

    def _rejection_of(self, invocation: Invocation, operation: str) -> Response | None:
        if invocation.endpoint not in self._queues:
            return None
        return _rejection(
            f"Endpoint {invocation.endpoint} is an asynchronous endpoint and does not support {operation}; use "
            "InvokeEndpointAsync."
        )

    def submit(self, invocation: Invocation) -> Response:
        """Answer InvokeEndpointAsync: the request is in the queue. Texts of rejections are ours."""
        try:
            queue = self._queue(invocation.endpoint)
            request = _checked_request(invocation, queue.config, self._now())
        except _RejectedError as error:
            return _rejection(str(error))
        queue.add(request)
        headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-OutputLocation": request.output}
        if request.failure is not None:
            headers["X-Amzn-SageMaker-FailureLocation"] = request.failure
        return Response(202, headers, json.dumps({"InferenceId": request.inference_id}).encode())

    def close(self) -> None:
        """Stop everything."""
        for name in list(self._queues):
            self._drop(name)
        self._host.close()

    def _queue(self, name: str) -> AsyncQueue:
        if name in self._queues:
            return self._queues[name]
        if self._instances(name) is None:
            raise _RejectedError(f"Endpoint {name} not found.")
        raise _RejectedError(
            f"Endpoint {name} is not an asynchronous endpoint and does not support InvokeEndpointAsync; use "
            "InvokeEndpoint."
        )

    def _drop(self, name: str) -> None:
        queue = self._queues.pop(name, None)
        if queue is not None:
            queue.close()

    def _answer_and_store(self, request: AsyncRequest, config: AsyncConfig) -> None:
        endpoint = request.invocation.endpoint
        try:
            body, failure = self._answer_or_failure(request)
            if failure is None:
                self._put(request, request.output, body)
            elif request.failure is not None:
                self._put(request, request.failure, failure.encode())
            self._notify(request, config, failure)
        except Exception as error:  # nothing waits for this thread, so the log is the only place for the error
            self._log(f"endpoint {endpoint}: request {request.inference_id} was lost: {error}")
            return
        self._log(f"endpoint {endpoint}: request {request.inference_id} {failure or 'is answered'}")

    def _answer_or_failure(self, request: AsyncRequest) -> tuple[bytes, str | None]:
        invocation, failure = request.invocation, None
        variant = self._variants[invocation.endpoint].name
        if self._now() - request.received > request.queue_seconds:
            self._record(invocation.endpoint, variant, "ExpiredRequests", 1)
            failure = f"The request expired after {request.queue_seconds:g} seconds in the queue."
        elif request.source is not None:
            try:
                invocation = replace(invocation, body=self._get(request, request.source))
            except Exception as error:  # whatever S3 says
                failure = f"Failed to download the request from {request.source}: {error}"
        if failure is None:
            answer = self._host.invoke(invocation)
            if answer.status == 200:
                return answer.body, None
            failure = _error_text(answer)
        self._record(invocation.endpoint, variant, "InvocationFailures", 1)
        return b"", failure

    def _client_for(self, service: str, request: AsyncRequest) -> Any:
        return self._client(service, self._variants[request.invocation.endpoint].container.role)

    def _get(self, request: AsyncRequest, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        found: bytes = self._client_for("s3", request).get_object(Bucket=bucket, Key=key)["Body"].read()
        return found

    def _put(self, request: AsyncRequest, uri: str, body: bytes) -> None:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        self._client_for("s3", request).put_object(Bucket=bucket, Key=key, Body=body)

    def _notify(self, request: AsyncRequest, config: AsyncConfig, failure: str | None) -> None:
        topic = config.success_topic if failure is None else config.error_topic
        if topic is None:
            return
        asked = {"endpointName": request.invocation.endpoint}
        asked["contentType"] = request.invocation.headers.get("content-type", "")
        message: dict[str, Any] = {
            "awsRegion": self._region,
            "eventTime": _time(datetime.fromtimestamp(self._now(), UTC)),
            "receivedTime": _time(datetime.fromtimestamp(request.received, UTC)),
            "invocationStatus": "Completed" if failure is None else "Failed",
            "requestParameters": asked | ({} if request.source is None else {"inputLocation": request.source}),
            "inferenceId": request.inference_id,
            "eventVersion": "1.0",
            "eventSource": "aws:sagemaker",
            "eventName": "InferenceResult",
        }
        if failure is None:
            message["responseParameters"] = {"outputLocation": request.output}
        else:
            message["failureReason"] = failure
        self._client_for("sns", request).publish(TopicArn=topic, Message=json.dumps(message))


def _checked_request(invocation: Invocation, config: AsyncConfig, now: float) -> AsyncRequest:
    asked = invocation.headers
    source, body = asked.get(f"{_HEADER}inputlocation"), invocation.body
    if (source is None) == (not body):
        raise _RejectedError("Provide exactly one of Body and InputLocation.")
    if len(body) > limits.MAX_INLINE_BYTES:
        raise _RejectedError(f"Body has {len(body)} bytes; it may have {limits.MAX_INLINE_BYTES}.")
    if source is not None and re.fullmatch(r"s3://[^/]+/.+", source) is None:
        raise _RejectedError(f"InputLocation {source} is not an S3 URI that the local AWS reads.")
    inference_id = asked.get(f"{_HEADER}inference-id") or str(uuid.uuid4())
    if len(inference_id) > limits.MAX_INFERENCE_ID_LENGTH:
        raise _RejectedError(f"InferenceId has more than {limits.MAX_INFERENCE_ID_LENGTH} characters.")
    extension = _matching(asked, "s3outputpathextension", _OUTPUT_EXTENSION)
    name = _matching(asked, "filename", _FILE_NAME) or f"{inference_id}.out"
    below = "/".join(part for part in ((extension or "").strip("/"), name) if part)
    failed = "/".join(part for part in ((extension or "").strip("/"), f"{inference_id}-error.out") if part)
    return AsyncRequest(
        invocation=Invocation(
            endpoint=invocation.endpoint,
            headers={name: asked[header] for header, name in _PASSED_ON.items() if header in asked},
            body=body,
            seconds=_seconds(asked, "invocationtimeoutseconds", 1, limits.MAX_ASYNC_SECONDS, limits.ASYNC_SECONDS),
            largest=limits.MAX_ASYNC_BYTES,
        ),
        inference_id=inference_id,
        source=source,
        output=f"{config.output}/{below}",
        failure=None if config.failures is None else f"{config.failures}/{failed}",
        queue_seconds=_seconds(
            asked,
            "requestttlseconds",
            limits.MIN_QUEUE_SECONDS,
            limits.MAX_QUEUE_SECONDS,
            limits.MAX_QUEUE_SECONDS,
        ),
        received=now,
    )


def _matching(asked: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str | None:
    value = asked.get(f"{_HEADER}{name}")
    if value is not None and pattern.fullmatch(value) is None:
        raise _RejectedError(f"The value {value} of {name} does not match {pattern.pattern}.")
    return value


def _seconds(asked: Mapping[str, str], name: str, least: int, most: int, default: int) -> float:
    value = asked.get(f"{_HEADER}{name}", str(default))
    if not value.isdecimal() or not least <= int(value) <= most:
        raise _RejectedError(f"The value {value} of {name} is not from {least} to {most}.")
    return float(value)


def _error_text(answer: Response) -> str:
    """SageMaker's hint at a log group is left out."""
    try:
        text = str(json.loads(answer.body)["Message"])
    except (ValueError, KeyError, TypeError):
        return answer.body.decode(errors="replace")
    return text.partition(" See the log group")[0]


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _rejection(text: str) -> Response:
    body = json.dumps({"Message": text}).encode()
    return Response(400, {"Content-Type": "application/json", "x-amzn-ErrorType": "ValidationError"}, body)
