"""Data capture of the local AWS: requests and answers of endpoints as lines of JSON in its S3.

Keys and lines follow "Capture data from real-time endpoint" in SageMaker's developer guide. SageMaker collects lines
for some minutes. Here each invocation writes its own file before the caller gets the answer.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cdk_triton_local.endpoints import (
    Component,
    DataCapture,
    Endpoint,
    EndpointHost,
    Invocation,
    Response,
    Shift,
    StreamedResponse,
    all_at_once,
)

__all__ = ["CapturingHost", "capture_of"]

_INFERENCE_ID = "x-amzn-sagemaker-inference-id"
_VARIANT = "x-Amzn-Invoked-Production-Variant"


def capture_of(configuration: Mapping[str, Any]) -> DataCapture | None:
    """The data capture of an endpoint configuration, from the answer of DescribeEndpointConfig; None without one."""
    asked = configuration.get("DataCaptureConfig") or {}
    if not asked or not asked.get("EnableCapture", True):
        return None
    modes = {option["CaptureMode"] for option in asked["CaptureOptions"]}
    types = asked.get("CaptureContentTypeHeader") or {}
    return DataCapture(
        url=asked["DestinationS3Uri"].rstrip("/"),
        percentage=int(asked["InitialSamplingPercentage"]),
        inputs=bool(modes & {"Input", "InputAndOutput"}),
        outputs=bool(modes & {"Output", "InputAndOutput"}),
        encodings={
            **dict.fromkeys(types.get("CsvContentTypes", ()), "CSV"),
            **dict.fromkeys(types.get("JsonContentTypes", ()), "JSON"),
        },
    )


class CapturingHost:
    """An `EndpointHost` around another one. It stores requests and answers of the endpoints that have data capture.

    Args:
        host: runs the endpoints.
        s3: given the ARN of the execution role of the endpoint's model, makes a boto3 S3 client.
        log: gets a line if something could not be stored.
    """

    def __init__(self, host: EndpointHost, s3: Callable[[str], Any], log: Callable[[str], None]) -> None:
        self._host = host
        self._s3 = s3
        self._log = log
        self._captures: dict[str, tuple[DataCapture, str]] = {}  # with the role

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        """Create or update an endpoint; see `EndpointHost.deploy`."""
        self._host.deploy(endpoint, shift)
        if endpoint.capture is None:
            self._captures.pop(endpoint.name, None)
        else:
            self._captures[endpoint.name] = (endpoint.capture, endpoint.variants[0].container.role)

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
        """Stop an endpoint; see `EndpointHost.remove`."""
        self._captures.pop(name, None)
        self._host.remove(name)

    def invoke(self, invocation: Invocation) -> Response:
        """Answer an invocation; see `EndpointHost.invoke`."""
        answer = self._host.invoke(invocation)
        capture, role = self._captures.get(invocation.endpoint, (None, ""))
        if capture and answer.status == 200 and random.random() * 100 < capture.percentage:  # noqa: S311 no secret
            try:
                self._keep(capture, role, invocation, answer)
            except Exception as error:  # a fault of S3 does not change the answer
                self._log(f"endpoint {invocation.endpoint}: nothing captured: {error}")
        return answer

    def stream(self, invocation: Invocation) -> Response | StreamedResponse:
        """Answer without capturing anything; see `EndpointHost.stream`."""
        return self._host.stream(invocation)

    def close(self) -> None:
        """Stop everything."""
        self._host.close()

    def _keep(self, capture: DataCapture, role: str, invocation: Invocation, answer: Response) -> None:
        now, event = datetime.now(UTC), str(uuid.uuid4())
        data: dict[str, Any] = {}
        if capture.inputs:
            kind = invocation.headers.get("content-type", "application/octet-stream")
            data["endpointInput"] = _side("INPUT", kind, invocation.body, capture.encodings)
        if capture.outputs:
            kind = answer.headers.get("Content-Type", "application/octet-stream")
            data["endpointOutput"] = _side("OUTPUT", kind, answer.body, capture.encodings)
        metadata = {"eventId": event, "inferenceTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if _INFERENCE_ID in invocation.headers:
            metadata["inferenceId"] = invocation.headers[_INFERENCE_ID]
        line = {"captureData": data, "eventMetadata": metadata, "eventVersion": "0"}
        bucket, _, prefix = capture.url.removeprefix("s3://").partition("/")
        variant = answer.headers.get(_VARIANT, "AllTraffic")
        name = f"{now:%Y/%m/%d/%H/%M-%S}-{now.microsecond // 1000:03}-{event}.jsonl"
        key = "/".join(part for part in (prefix, invocation.endpoint, variant, name) if part)
        self._s3(role).put_object(Bucket=bucket, Key=key, Body=f"{json.dumps(line)}\n".encode())


def _side(mode: str, kind: str, body: bytes, encodings: Mapping[str, str]) -> dict[str, str]:
    encoding = encodings.get(kind.partition(";")[0].strip().lower(), "BASE64")
    text = base64.b64encode(body).decode() if encoding == "BASE64" else body.decode(errors="replace")
    return {"observedContentType": kind, "mode": mode, "data": text, "encoding": encoding}
