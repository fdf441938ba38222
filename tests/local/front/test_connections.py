"""Connections to the local AWS: one carries many requests, and none outlives the server."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cdk_triton.local.aws import LocalAws
from cdk_triton.local.front import Routes, Server, Signatures
from cdk_triton.local.front.connection import MAILBOX

if TYPE_CHECKING:
    from tests.local.conftest import Signed

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


def test_a_client_that_waits_to_be_told_to_go_on_is_told_once(caller: Caller) -> None:
    assert caller("PUT", OBJECT, b"some", {"Expect": "100-continue"})[0] == 200
    assert caller("GET", OBJECT)[2] == b"some"


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
