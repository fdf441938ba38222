"""Reads requests from a connection and rejects foreign ones.

These are requests of web pages, requests for another host, malformed requests, and requests that are not signed with
the secret of this local AWS.

A connection stays open for the next request. werkzeug closes it after each answer, because an application may leave a
part of the body in it. Here the whole body is read first, unless it comes in chunks. A new connection would be a new
thread here, and a new socket of the client.
"""

from __future__ import annotations

import functools
import io
import json
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from email.message import Message
from http import HTTPStatus
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote
from xml.sax.saxutils import escape

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer
from werkzeug.wrappers import Response as WsgiResponse

from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints import BrokenStreamError, EndpointHost, Invocation, Response, StreamedResponse
from cdk_triton_local.faults import ServiceError
from cdk_triton_local.front.signatures import Signatures, SignedRequest
from cdk_triton_local.wire import event_stream

__all__ = ["HOST", "MAILBOX", "Listener"]

HOST: Final = "127.0.0.1"
"""The only address ever listened on. An address and not `localhost`: S3 clients then put the bucket into the path."""

MAILBOX: Final = "/cdk-triton/custom-resource-responses/"
"""Custom resources send their answers below this path. Each URL has a secret of its own; requests are not signed."""

_INVOCATION = re.compile(
    r"/endpoints/(?P<endpoint>[^/?]+)/(?P<operation>invocations|async-invocations|invocations-response-stream)(\?.*)?"
)
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\r?\n")  # RFC 9112, "Chunked Transfer Coding"
_LONGEST_LINE = 65536
_IDLE_SECONDS = 120
_LARGE = 65536
"""A larger body is sent as it is, instead of copied behind the headers."""
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_STATUSES = {status.value for status in HTTPStatus}


class Application(Protocol):
    """The WSGI application that answers a connection's requests, with the parts that answer invocations."""

    signatures: Signatures
    on_request: Callable[[SignedRequest], ServiceError | None]
    host: EndpointHost
    submit: Callable[[Invocation], Response]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""


class _Connection(MotoRequestHandler):
    """Answers requests to endpoints here, and passes others to WSGI."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _IDLE_SECONDS

    @property
    def _application(self) -> Application:
        return cast("Application", self.server.app)  # Server puts it there

    def parse_request(self) -> bool:
        """Read a request's line and headers, and reject a foreign or malformed request."""
        if cast("Listener", self.server).is_closing:
            self.close_connection = True
            return False
        if not super().parse_request():
            return False
        if fault := _foreign_fault(self.headers, int(self.server.server_address[1])):
            self._send(Response(403, {"Content-Type": "text/plain"}, fault.encode()), last=True)
            return False
        if fault := _framing_fault(self.headers):
            self._send(Response(400, {"Content-Type": "text/plain"}, f"{fault}\n".encode()), last=True)
            return False
        return True

    def do_POST(self) -> None:  # noqa: N802  the name is http.server's
        """Answer an invocation of an endpoint; `run_wsgi` answers anything else."""
        path = _INVOCATION.fullmatch(self.path)
        if path is None:
            self.run_wsgi()
            return
        body = self._read_body()
        if body is None:
            error = {"Message": "the body of the request does not have the chunked form that its headers announce"}
            self._send(Response(400, {"x-amzn-ErrorType": "ValidationError"}, json.dumps(error).encode()), last=True)
            return
        if len(body) < self._length:
            self.close_connection = True  # the client has hung up
            return
        headers = _header_values(self.headers)
        if rejection := self._error(SignedRequest("POST", self.path, headers, lambda: body)):
            self._send(_error_response(rejection, headers))
            return
        invocation = Invocation(unquote(path["endpoint"]), headers, body)
        if path["operation"] == "invocations-response-stream":
            self._stream(_accepting(invocation))
        elif path["operation"] == "async-invocations":
            self._send(self._application.submit(invocation))
        else:
            self._send(self._application.host.invoke(invocation))

    def _stream(self, invocation: Invocation) -> None:
        answer = self._application.host.stream(invocation)
        if isinstance(answer, Response):
            self._send(answer)
            return
        try:
            self._send_stream(answer)
        finally:
            answer.close()

    def _send_stream(self, answer: StreamedResponse) -> None:
        """Write each part when it arrives. Without its last chunk, a client sees that the answer is not complete."""
        headers = {
            f"X-Amzn-SageMaker-{name}" if name == "Content-Type" else name: value
            for name, value in answer.headers.items()
        }
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers.items())]
        lines += [f"Content-Type: {event_stream.CONTENT_TYPE}", "Transfer-Encoding: chunked", "", ""]
        self.wfile.write("\r\n".join(lines).encode("latin-1"))
        try:
            for part in answer.parts:
                self._send_chunk(event_stream.payload_part(part))
        except BrokenStreamError as error:
            members = {"Message": str(error), "ErrorCode": error.code}
            self._send_chunk(event_stream.exception("ModelStreamError", members))
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def run_wsgi(self) -> None:
        """Answer any other request."""
        headers = _header_values(self.headers)
        body = functools.cache(self._plain_body)
        error = None
        if not self.path.startswith(MAILBOX):
            error = self._error(SignedRequest(self.command, self.path, headers, body))
            if error is not None and not error.is_late:
                self._send_error(error, headers, last=True)
                return
        if "Transfer-Encoding" in headers:
            super().run_wsgi()  # werkzeug reads the chunks, and closes the connection
            return
        if len(body()) < self._length:
            self.close_connection = True  # the client has hung up
            return
        answer = WsgiResponse.from_app(self.server.app, self.make_environ() | {"wsgi.input": io.BytesIO(body())})
        try:
            content = b"".join(answer.iter_encoded())
        finally:
            answer.close()
        if error is not None:
            self._send_error(error, headers)
        else:
            self._send(Response(answer.status_code, dict(answer.headers), content))

    def _error(self, request: SignedRequest) -> ServiceError | None:
        fault = self._application.signatures.fault(request)
        if fault is not None:
            return ServiceError("InvalidClientTokenId", 403, fault)
        return self._application.on_request(request)

    def _send_error(self, error: ServiceError, headers: Mapping[str, str], *, last: bool = False) -> None:
        response = _error_response(error, headers)
        self._send(replace(response, body=b"") if self.command == "HEAD" else response, last=last)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log nothing: the services log what matters."""

    def log_error(self, format: str, *args: Any) -> None:  # noqa: A002  the name is http.server's
        """Log nothing about clients that hang up."""

    def _send(self, answer: Response, *, last: bool = False) -> None:
        """`last` closes the connection, because the rest of the request was not read."""
        reason = HTTPStatus(answer.status).phrase if answer.status in _STATUSES else ""
        lines = [f"HTTP/1.1 {answer.status} {reason}"]
        # A wrong length would break the next answer. Only that of HEAD has another one, which is the object's.
        is_head = self.command == "HEAD"
        headers = {name: value for name, value in answer.headers.items() if is_head or name.lower() != "content-length"}
        lines += [f"{name}: {value}" for name, value in headers.items()]
        is_known = any(name.lower() == "content-length" for name in headers)
        if not is_known and answer.status not in _WITHOUT_BODY:
            lines.append(f"Content-Length: {len(answer.body)}")
        if last:
            self.close_connection = True
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if len(answer.body) > _LARGE:
            self.wfile.write(head)
            self.wfile.write(answer.body)
        else:
            self.wfile.write(head + answer.body)  # in one packet

    def _read_body(self) -> bytes | None:
        """Return None if the chunks are malformed.

        If a body in chunks is too large for an invocation, the rest is not read.
        """
        if "Transfer-Encoding" not in self.headers:
            return self._plain_body()
        body = bytearray()
        while match := _CHUNK.fullmatch(self.rfile.readline(_LONGEST_LINE)):
            size = int(match[1], 16)
            if size == 0:
                while self.rfile.readline(_LONGEST_LINE).strip():
                    pass  # a trailer
                return bytes(body)
            if len(body) + size > limits.MAX_INVOCATION_BYTES:
                self.close_connection = True
                return bytes(body + self.rfile.read(limits.MAX_INVOCATION_BYTES + 1 - len(body)))
            chunk = self.rfile.read(size + 2)
            if len(chunk) < size + 2 or not chunk.endswith(b"\r\n"):
                return None
            body += chunk[:size]
        return None

    def _plain_body(self) -> bytes:
        """Empty for a body in chunks, whose digest every AWS client puts into a header."""
        return self.rfile.read(self._length)

    @property
    def _length(self) -> int:
        return int(self.headers.get("Content-Length", 0))


def _accepting(invocation: Invocation) -> Invocation:
    """InvokeEndpointWithResponseStream has a header of its own for what InvokeEndpoint has in `Accept`."""
    accept = invocation.headers.get("x-amzn-sagemaker-accept")
    kept = {name: value for name, value in invocation.headers.items() if name != "accept"}
    return replace(invocation, headers=kept if accept is None else {**kept, "accept": accept})


class Listener(ThreadedWSGIServer):
    """Accepts connections, each of which has a thread that waits for the next request.

    Args:
        port: the port of the socket.
        application: answers the requests.
        fd: the file descriptor of the listening socket.

    Attributes:
        is_closing: whether no further request is answered.
    """

    def __init__(self, port: int, application: Application, fd: int) -> None:
        super().__init__(HOST, port, application, handler=_Connection, fd=fd)
        self.is_closing = False
        self._connections = set[socket.socket]()

    def process_request(self, request: Any, client_address: Any) -> None:
        """A client has connected."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A connection ends."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End each connection: now, or after the answer that is being made."""
        self.is_closing = True
        for each in list(self._connections):
            with suppress(OSError):  # it ends by itself
                each.shutdown(socket.SHUT_RD)  # wakes its thread


def _foreign_fault(headers: Message, port: int) -> str | None:
    """Web pages must not reach this server, because its functions run programs on this machine.

    Browsers name the page that sends a request in `Origin` or, if they omit that (an image, a link), its relation to
    us in `Sec-Fetch-Site` (Fetch, "HTTP extensions"; Fetch Metadata Request Headers); AWS clients send
    neither. The `Host` header shows a page whose own host name was made to lead to this machine (DNS rebinding).
    """
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return "the local AWS rejects requests of web pages; use an AWS SDK, the AWS CLI or the cdk CLI\n"
    if headers.get("Host", "").lower() not in (f"{HOST}:{port}", f"localhost:{port}"):
        return f"the local AWS answers requests for the host {HOST}:{port} only; use this host in AWS_ENDPOINT_URL\n"
    return None


def _framing_fault(headers: Message) -> str | None:
    """The reason why the end of the body is not certain, or None (RFC 9112, "Message Body Length")."""
    lengths, encodings = headers.get_all("Content-Length", []), headers.get_all("Transfer-Encoding", [])
    if len(set(lengths)) > 1 or not all(re.fullmatch("[0-9]{1,18}", length.strip()) for length in lengths):
        return f"the Content-Length {', '.join(lengths)!r} is not a number of bytes; correct this header"
    if encodings and lengths:
        return "the request has both a Content-Length and a Transfer-Encoding; remove one of them"
    if [each.strip().lower() for each in encodings] not in ([], ["chunked"]):
        return f"the Transfer-Encoding {', '.join(encodings)!r} is not supported by the local AWS; use 'chunked'"
    return None


def _header_values(headers: Message) -> dict[str, str]:
    """Keys are in lower case, and the values of a repeated header are joined by commas."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]},{value}" if key in joined else value
    return joined


def _error_response(error: ServiceError, headers: Mapping[str, str]) -> Response:
    """As JSON or XML, as the client expects it."""
    query = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    if query or "/s3/" in headers.get("authorization", ""):
        fault = f"<Error><Code>{error.code}</Code><Message>{escape(error.message)}</Message></Error>"
        body = f"<ErrorResponse>{fault}</ErrorResponse>" if query else fault
        return Response(error.status, {"Content-Type": "text/xml"}, body.encode())
    members = json.dumps({"__type": error.code, "message": error.message, "Message": error.message})
    json_headers = {"Content-Type": "application/json", "x-amzn-ErrorType": error.code}
    return Response(error.status, json_headers, members.encode())
