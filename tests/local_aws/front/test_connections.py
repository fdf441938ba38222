"""Connections to the local AWS: one carries many requests, and none outlives the server."""

from __future__ import annotations

import hashlib
import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Response
from cdk_triton_local.front import Routes, Server, Signatures
from cdk_triton_local.front.connection import MAILBOX

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble, Signed

OBJECT = "/kept/a"
LARGE = bytes(range(256)) * 4096


class Caller:
    """Sends signed requests to S3, all on one connection, which it never opens a second time."""

    def __init__(self, aws: LocalAws, signed: Signed) -> None:
        self._aws, self._signed = aws, signed
        self.connection = http.client.HTTPConnection("127.0.0.1", int(aws.url.rsplit(":", 1)[1]), timeout=10)
        self.connection.auto_open = 0
        self.connection.connect()

    def __call__(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        signed = self._signed(self._aws, method, path, body, headers or {}, service="s3")
        self.connection.request(method, path, body, signed)
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


@pytest.fixture
def caller(local_aws: LocalAws, signed: Signed) -> Iterator[Caller]:
    caller = Caller(local_aws, signed)
    caller("PUT", "/kept")
    yield caller
    caller.connection.close()


@pytest.mark.parametrize("content", [b"", b"some", LARGE], ids=["empty", "small", "large"])
def test_one_connection_carries_many_requests(caller: Caller, content: bytes) -> None:
    assert caller("PUT", OBJECT, content)[0] == 200
    for _ in range(3):
        status, headers, found = caller("GET", OBJECT)
        assert (status, found) == (200, content)
        assert headers["content-length"] == str(len(content))


def test_what_an_answer_has_no_body_for_does_not_end_the_connection(caller: Caller) -> None:
    caller("PUT", OBJECT, b"some")
    status, headers, found = caller("HEAD", OBJECT)
    assert (status, headers["content-length"], found) == (200, "4", b"")
    status, headers, _ = caller("DELETE", OBJECT)
    assert (status, headers.get("content-length")) == (204, None)
    assert caller("GET", OBJECT)[0] == 404
    assert caller("HEAD", OBJECT)[0] == 404
    assert caller("GET", "/kept")[0] == 200


@pytest.mark.parametrize("length", ["0", "3", "30"])
def test_an_answer_of_an_endpoint_has_the_length_of_its_body_whatever_its_headers_say(
    local_aws: LocalAws,
    caller: Caller,
    signed: Signed,
    endpoint_double: EndpointDouble,
    monkeypatch: pytest.MonkeyPatch,
    length: str,
) -> None:
    answer = Response(200, {"content-length": length}, b"0123456789")
    monkeypatch.setattr(endpoint_double, "invoke", lambda invocation: answer)
    path = "/endpoints/e/invocations"
    for _ in range(2):
        caller.connection.request("POST", path, b"{}", signed(local_aws, "POST", path, b"{}"))
        with caller.connection.getresponse() as found:
            assert (found.getheader("Content-Length"), found.read()) == ("10", b"0123456789")


def test_a_client_that_waits_to_be_told_to_go_on_is_told_once(local_aws: LocalAws, signed: Signed) -> None:
    port = int(local_aws.url.rsplit(":", 1)[1])
    local_aws.client("s3").create_bucket(Bucket="waited")
    expect = {"Host": f"127.0.0.1:{port}", "Content-Length": "4", "Expect": "100-continue"}
    headers = signed(local_aws, "PUT", "/waited/a", b"some", expect, service="s3")
    lines = ["PUT /waited/a HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client, client.makefile("rb") as answers:
        client.sendall("\r\n".join(lines).encode())
        assert answers.readline().startswith(b"HTTP/1.1 100 ")
        assert answers.readline() == b"\r\n"
        client.sendall(b"some")
        assert answers.readline().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["/kept/a", "/endpoints/e/invocations"])
def test_a_client_that_hangs_up_in_a_body_gets_no_answer(local_aws: LocalAws, signed: Signed, path: str) -> None:
    port = int(local_aws.url.rsplit(":", 1)[1])
    method, service = ("PUT", "s3") if path == "/kept/a" else ("POST", "sagemaker")
    body = b"0123456789"
    digest = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest()} if service == "s3" else {}
    length = {"Host": f"127.0.0.1:{port}", "Content-Length": "10", **digest}
    headers = signed(local_aws, method, path, body, length, service=service)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", "0123"]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall("\r\n".join(lines).encode())
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def test_a_connection_does_not_outlive_its_server() -> None:
    server = Server(Routes(lambda environ, start: [], Signatures(lambda key: None), print))
    server.start()
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:

        def ask() -> tuple[int, bytes]:
            connection.request("PUT", f"{MAILBOX}nobody", b"{}")
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert ask() == (404, b"no custom resource waits here")
        server.stop()
        with pytest.raises(ConnectionError):
            ask()
