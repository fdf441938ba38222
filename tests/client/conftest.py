"""A SageMaker endpoint on a loopback port: an identity model behind the REST API that boto3 speaks.

tritonclient judges what arrives: its response parser decodes the request (a request is a response with other names),
and its request writer makes the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.config import Config
from tests.client.streaming_endpoint import Client, Streaming, served
from tritonclient.http import InferenceServerClient, InferInput

from cdk_triton.client import AsyncTritonClient, InferenceResult, TritonClient

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="


@dataclass
class Answer:
    """One HTTP answer."""

    body: bytes
    content_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Endpoint:
    """The endpoint as a test sees it.

    Attributes:
        port: where it listens.
        requests: path, headers and JSON header of what came in.
        answer: gives what to answer instead of the inputs themselves; None closes the connection.
        handle: answers the whole request instead, unrecorded.
    """

    port: int
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answer: Callable[[], Answer | None] | None = None
    handle: Callable[[Mapping[str, str], bytes], Answer] | None = None

    def arrived(self) -> int:
        """How many requests came in, at least one: a client with a short timeout may be faster than this server."""
        deadline = time.monotonic() + 30
        while not self.requests and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        return len(self.requests)

    def runtime(self, **config: Any) -> Any:
        """Return a boto3 client of this endpoint."""
        return boto3.client(
            "sagemaker-runtime",
            region_name="eu-west-1",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}, proxies={}, **config),
        )


def identity(body: bytes, content_type: str) -> tuple[dict[str, Any], Answer]:
    """Answer with the inputs as outputs, in the format that the request asks for, as Triton does."""
    size = None
    if content_type.startswith(BINARY):
        size = int(re.fullmatch(r"\d+", content_type[len(BINARY) :]).group())  # type: ignore[union-attr]
        assert 0 <= size <= len(body)
    header = json.loads(body[:size])
    as_response = json.dumps(header | {"outputs": header["inputs"]}).encode()
    judge = InferenceServerClient.parse_response_body(
        as_response + (body[size:] if size is not None else b""),
        header_length=None if size is None else len(as_response),
    )
    binary_by_default = header.get("parameters", {}).get("binary_data_output", False)
    wanted = {o["name"]: o.get("parameters", {}).get("binary_data", False) for o in header.get("outputs", [])}
    answers = []
    for tensor in header["inputs"]:
        if not wanted or tensor["name"] in wanted:
            answer = InferInput(tensor["name"], tensor["shape"], tensor["datatype"])
            answer.set_data_from_numpy(
                judge.as_numpy(tensor["name"]), binary_data=wanted.get(tensor["name"], binary_by_default)
            )
            answers.append(answer)
    reply, _ = InferenceServerClient.generate_request_body(answers)
    head, length = json.JSONDecoder().raw_decode(reply.decode("latin-1"))
    del head["parameters"]
    head = {"model_name": "identity", "model_version": "1", "outputs": head.pop("inputs")} | head
    if "id" in header:
        head["id"] = header["id"]
    text, tail = json.dumps(head).encode(), reply[length:]
    is_binary = any("binary_data_size" in o.get("parameters", {}) for o in head["outputs"])
    return header, Answer(text + tail, f"{BINARY}{len(text)}" if is_binary else "application/json")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """The endpoint of one test."""
    seen = Endpoint(port=0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if seen.handle is not None:
                self.send(seen.handle(headers, body))
                return
            header, answer = identity(body, headers["content-type"])
            seen.requests.append((self.path, headers, header))
            other = answer if seen.answer is None else seen.answer()
            if other is None:
                self.close_connection = True
            else:
                self.send(other)

        def send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {
                "Content-Type": answer.content_type,
                "Content-Length": str(len(answer.body)),
                "x-Amzn-Invoked-Production-Variant": "AllTraffic",
                **answer.headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # of connections that come at the same time

    server = Server(("127.0.0.1", 0), Handler)
    seen.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield seen
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def arrays() -> dict[str, Any]:
    """One array per data type that numpy and Triton share."""
    numeric = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
    rows = [[0, 1, 2], [3, 4, 5]]
    return {name: np.array(rows).astype(name) for name in numeric.split()}


@pytest.fixture
def answer() -> type[Answer]:
    """The class of answers, for tests that replace one."""
    return Answer


@pytest.fixture
def never() -> Iterator[Callable[[], None]]:
    """An answer that does not come until the test is over."""
    over = threading.Event()

    def wait() -> None:
        over.wait(30)

    yield wait
    over.set()


@pytest.fixture
def closed_port() -> int:
    """A port of the loopback interface where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def environment(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that leads to the endpoint, for what takes its region, credentials and address from there."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{endpoint.port}",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    return monkeypatch


@pytest.fixture
def streaming(endpoint: Any, environment: pytest.MonkeyPatch) -> Iterator[Streaming]:
    """In place of the endpoint of the environment."""
    with served() as seen:
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{seen.port}")
        yield seen


def _stream(inputs: Any, **options: Any) -> list[InferenceResult]:
    return list(TritonClient("texts").stream(inputs, **options))


def _async_stream(inputs: Any, **options: Any) -> list[InferenceResult]:
    async def main() -> list[InferenceResult]:
        async with AsyncTritonClient("texts") as client:
            return [result async for result in await client.stream(inputs, **options)]

    return asyncio.run(main())


def _generate(inputs: Any, **options: Any) -> list[InferenceResult]:
    return [TritonClient("texts").generate(inputs, **options)]


def _async_generate(inputs: Any, **options: Any) -> list[InferenceResult]:
    async def main() -> list[InferenceResult]:
        async with AsyncTritonClient("texts") as client:
            return [await client.generate(inputs, **options)]

    return asyncio.run(main())


@pytest.fixture(params=[_stream, _async_stream], ids=["sync", "async"])
def stream(request: pytest.FixtureRequest) -> Client:
    """The results of `stream` of either client."""
    client: Client = request.param
    return client


@pytest.fixture(params=[_generate, _async_generate], ids=["sync", "async"])
def generate(request: pytest.FixtureRequest) -> Client:
    """The result of `generate` of either client."""
    client: Client = request.param
    return client
