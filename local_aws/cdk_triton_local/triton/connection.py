"""HTTP to one tritonserver: keep-alive connections that any thread can use."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

__all__ = ["Connections", "ContainerReply", "OpenReply", "ServerGoneError"]

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class ContainerReply:
    """The answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body, for an error message."""
        return self.body.decode(errors="replace")


class ServerGoneError(Exception):
    """The server did not answer: it accepts no connections, or closed one during a request."""


class OpenReply:
    """An answer of the server whose body is read as it arrives.

    Attributes:
        status: the HTTP status.
        headers: the headers.
    """

    def __init__(self, response: http.client.HTTPResponse, sock: socket.socket, end: Callable[[bool], None]) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = dict(response.getheaders())
        self._response = response
        self._sock = sock
        self._end = end
        self._is_complete = False

    def read(self) -> bytes:
        """The whole body.

        Raises:
            TimeoutError: there were no bytes in time.
            ServerGoneError: the connection broke.
        """
        with _errors_translated():
            body = self._response.read()
        self._is_complete = True
        return body

    def read_some(self, timeout: float) -> bytes:
        """The bytes that have arrived; waits for some. Nothing is the end of the body.

        Args:
            timeout: seconds to wait.

        Raises:
            TimeoutError: there were no bytes in time.
            ServerGoneError: the connection broke.
        """
        if self._is_complete:
            return b""
        self._sock.settimeout(timeout)
        with _errors_translated():
            some = self._response.read1()
            if not some and self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)
        self._is_complete = not some
        return some

    def close(self) -> None:
        """End the request: if the body is not complete, the server sees that nobody reads it."""
        self._end(self._is_complete and not self._response.will_close)


class Connections:
    """Keep-alive connections to a port of this machine.

    Args:
        port: where the server listens.
        timeout: the time limit for connecting, and for reading an answer, in seconds.
    """

    def __init__(self, port: int, *, timeout: float) -> None:
        self._port = port
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []  # append and pop are atomic

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> ContainerReply:
        """Send one request; on the connection that was used last, or a new one if all are busy.

        Args:
            method: the HTTP method.
            path: the path.
            body: the body, if any.
            headers: further headers.
            timeout: seconds that this answer may take, if not the usual ones.

        Raises:
            TimeoutError: there was no answer in time.
            ServerGoneError: there was no answer at all.
        """
        with closing(self.open(method, path, body, headers, timeout=timeout)) as reply:
            return ContainerReply(reply.status, reply.headers, reply.read())

    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> OpenReply:
        """Send one request as `request` does, and return when the headers of the answer are here."""
        connection = self._connection(self._timeout if timeout is None else timeout)

        def end(can_be_used_again: bool) -> None:
            if can_be_used_again:
                self._idle.append(connection)
            else:
                connection.close()

        try:
            with _errors_translated():
                connection.request(method, path, body, dict(headers or {}))
                sock = connection.sock
                return OpenReply(connection.getresponse(), sock, end)
        except BaseException:
            connection.close()
            raise

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        try:
            connection = self._idle.pop()
        except IndexError:
            return _Connection(_HOST, self._port, timeout=timeout)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except (http.client.HTTPException, OSError) as error:
        raise ServerGoneError(str(error) or type(error).__name__) from error


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        # Without this, the second segment of a request waits for the acknowledgement of the first: 40 ms.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
