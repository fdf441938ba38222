"""HTTP to one tritonserver: keep-alive connections that any thread can use."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Connections", "ContainerReply", "ServerGoneError"]

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
        connection = self._connection(self._timeout if timeout is None else timeout)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            reply = ContainerReply(response.status, dict(response.getheaders()), response.read())
        except TimeoutError:
            connection.close()
            raise
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise ServerGoneError(str(error) or type(error).__name__) from error
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return reply

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


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        # Without this, the second segment of a request waits for the acknowledgement of the first: 40 ms.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
