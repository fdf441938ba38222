"""A double of an endpoint that streams, whose answers a test makes piece by piece, as SageMaker's API writes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cdk_triton.client import InferenceResult
from cdk_triton_local.wire import event_stream

Client = Callable[..., list[InferenceResult]]

EVENTS = "text/event-stream; charset=utf-8"


@dataclass
class Streaming:
    """An endpoint that answers InvokeEndpointWithResponseStream and InvokeEndpoint.

    Attributes:
        parts: the pieces of the answer; an exception of the stream is given as its name and message. None waits for
            `go_on`, and "cut" closes the connection.
        requests: path, headers and body of what came in.
        left: set when a connection ended while an answer was being sent.
    """

    port: int = 0
    content_type: str = EVENTS
    parts: list[Any] = field(default_factory=list)
    status: int = 200
    requests: list[tuple[str, Any, dict[str, Any]]] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Streaming

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.requests.append((self.path, self.headers, json.loads(body)))
        if self.seen.status != 200 or self.path.endswith("/invocations"):
            self.whole()
            return
        self.send_response(200)
        self.send_header("X-Amzn-SageMaker-Content-Type", self.seen.content_type)
        self.send_header("x-Amzn-Invoked-Production-Variant", "blue")
        self.send_header("Content-Type", event_stream.CONTENT_TYPE)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.stream()
        except OSError:
            self.close_connection = True
            self.seen.left.set()

    def stream(self) -> None:
        for part in self.seen.parts:
            if part is None:
                self.seen.go_on.wait(30)
            elif part == "cut":
                self.close_connection = True
                return
            elif isinstance(part, bytes):
                self.chunk(event_stream.payload_part(part))
            else:
                self.chunk(event_stream.exception(part[0], {"Message": part[1]}))
        self.chunk(b"")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def whole(self) -> None:
        body = b"".join(self.seen.parts)
        self.send_response(self.seen.status)
        self.send_header("Content-Type", self.seen.content_type)
        self.send_header("x-Amzn-Invoked-Production-Variant", "blue")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Keep quiet about callers that hang up."""


@contextmanager
def served() -> Iterator[Streaming]:
    """Serve an endpoint on loopback, whose `port` says where."""
    seen = Streaming()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"seen": seen}))
    seen.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield seen
    finally:
        seen.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


HI = {"PROMPT": "hi"}


def event(text: str, **more: Any) -> bytes:
    return b"data: " + json.dumps({"TEXT": text, "model_name": "m", "model_version": "1", **more}).encode() + b"\n\n"


def words(results: list[InferenceResult]) -> list[str]:
    return [result["TEXT"][0].decode() for result in results]
