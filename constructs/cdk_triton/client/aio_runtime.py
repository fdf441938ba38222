"""`AioRuntime`: the calls of SageMaker's runtime on aiohttp, many at a time on one event loop."""

from __future__ import annotations

import asyncio
import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cdk_triton.client.runtime import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS
from cdk_triton.client.signed_calls import SignedCalls
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    import aiohttp
    import boto3
    from botocore.credentials import ReadOnlyCredentials

    from cdk_triton.client.signed_calls import Call, EventReader

__all__ = ["AioEventStream", "AioRuntime"]

_LARGE_BYTES = 262_144
"""Hashing or copying a larger body at once would hold up the other calls of the event loop."""


_STREAM = "InvokeEndpointWithResponseStream"


class AioRuntime:
    """One session of aiohttp. Create it with `open`, on the event loop that uses it.

    Args:
        calls: writes and reads calls.
        session: sends them.
        most: how many calls wait for their answers at the same time.
    """

    def __init__(self, calls: SignedCalls, session: aiohttp.ClientSession, most: int) -> None:
        self._calls, self._session = calls, session
        # Not a limit of aiohttp's connections: a stream keeps its own for minutes, and what waits for one has no
        # time limit. So a task that calls while it reads a stream would wait for itself.
        self._turns = asyncio.Semaphore(most)
        self._renewal: asyncio.Task[ReadOnlyCredentials] | None = None

    @classmethod
    async def open(
        cls,
        most: int,
        *,
        read_timeout: float = READ_TIMEOUT_SECONDS,
        session: boto3.Session | None = None,
        fix: str = "use TritonClient",
    ) -> AioRuntime:
        """Make a runtime.

        Args:
            most: how many calls wait for their answers at the same time; a stream counts until it begins.
            read_timeout: seconds that the answer may take.
            session: the boto3 session that has region and credentials; by default boto3's default session.
            fix: what to do instead if only boto3 can be used, for the message.

        Raises:
            ConfigurationError: aiohttp is not installed, no AWS region is configured, or the environment sets a proxy
                or a CA bundle.
        """
        try:
            import aiohttp
        except ImportError as error:
            raise ConfigurationError(
                "AsyncTritonClient needs aiohttp, which is not installed: run `pip install 'cdk-triton[aio]'`"
            ) from error
        calls = await asyncio.to_thread(SignedCalls, fix, session)
        # Reading the authorities takes a tenth of a second, and plain HTTP, as of the local AWS, does not need them.
        tls = await asyncio.to_thread(_tls_context) if calls.url.startswith("https:") else True
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=read_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return cls(calls, http, most)

    async def invoke_endpoint(self, **arguments: Any) -> dict[str, Any]:
        """Call InvokeEndpoint, with the arguments of boto3's method.

        Raises:
            ClientError: the answer is an error.
            BotoCoreError: there are no credentials, no connection or no answer.
        """
        return await self.send("InvokeEndpoint", await self.sign("InvokeEndpoint", arguments))

    async def invoke_endpoint_async(self, **arguments: Any) -> dict[str, Any]:
        """Call InvokeEndpointAsync, as `invoke_endpoint` does."""
        return await self.send("InvokeEndpointAsync", await self.sign("InvokeEndpointAsync", arguments))

    async def invoke_endpoint_with_response_stream(self, **arguments: Any) -> dict[str, Any]:
        """Call InvokeEndpointWithResponseStream, as `invoke_endpoint` does; `Body` is an `AioEventStream`."""
        return await self.send_for_stream(await self.sign(_STREAM, arguments))

    async def send_for_stream(self, call: Call) -> dict[str, Any]:
        """Send a call of InvokeEndpointWithResponseStream, as `send` does; `Body` is an `AioEventStream`.

        Raises:
            ClientError: the answer is an error.
            BotoCoreError: there is no connection or no answer.
        """
        async with self._turns:
            response = await self._post(call)
            if response.status >= 300:
                with _errors_translated(call.url):
                    answer = await response.read()
                return self._calls.read(_STREAM, response.status, response.headers, answer)
        events = self._calls.events(_STREAM)
        members = self._calls.members(_STREAM, response.headers)
        return {**members, "Body": AioEventStream(response, events, call.url)}

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def sign(self, operation: str, arguments: Mapping[str, Any]) -> Call:
        """Write a call, as `SignedCalls.sign` does, outside the event loop if that takes a long time.

        Raises:
            BotoCoreError: there are no credentials, or an argument does not fit.
        """
        credentials = await self._credentials()
        if len(arguments.get("Body", b"")) > _LARGE_BYTES:
            return await asyncio.to_thread(self._calls.sign, operation, arguments, credentials)
        return self._calls.sign(operation, arguments, credentials)

    async def send(self, operation: str, call: Call) -> dict[str, Any]:
        """Send a call; AWS accepts its signature for some minutes, so it can be sent more than once.

        Raises:
            ClientError: the answer is an error.
            BotoCoreError: there is no connection or no answer.
        """
        async with self._turns, await self._post(call) as response:
            with _errors_translated(call.url):
                answer = await response.read()
        return self._calls.read(operation, response.status, response.headers, answer)

    async def _post(self, call: Call) -> aiohttp.ClientResponse:
        from yarl import URL

        body = call.body
        with _errors_translated(call.url):
            # The path is encoded already, as it is in the signature. aiohttp sends a file in pieces, which lets the
            # other calls go on, and bytes at once.
            return await self._session.post(
                URL(call.url, encoded=True),
                data=io.BytesIO(body) if len(body) > _LARGE_BYTES else body,
                headers=call.headers,
                allow_redirects=False,
            )

    async def _credentials(self) -> ReadOnlyCredentials:
        """Return valid credentials. One thread renews expired ones, for all calls that wait for them."""
        if not self._calls.may_block():
            return self._calls.credentials()
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(asyncio.to_thread(self._calls.credentials))
        # A call that is cancelled does not cancel what others wait for.
        return await asyncio.shield(self._renewal)


class AioEventStream:
    """The events of a streamed answer, as boto3's `EventStream` has them, for `async for`.

    Args:
        response: the open answer.
        events: reads its body.
        url: what was called, for messages.
    """

    def __init__(self, response: aiohttp.ClientResponse, events: EventReader, url: str) -> None:
        self._response, self._events, self._url = response, events, url

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        """Wait for each event.

        Raises:
            ClientError: an event is an error.
            BotoCoreError: the connection broke, or nothing arrived in time.
        """
        with _errors_translated(self._url):
            async for data in self._response.content.iter_any():
                for event in self._events.feed(data):
                    yield event

    def close(self) -> None:
        """Close the connection, if the answer is not complete."""
        self._response.close()


@contextmanager
def _errors_translated(url: str) -> Iterator[None]:
    import aiohttp

    try:
        yield
    except (TimeoutError, aiohttp.ClientError) as error:
        raise _as_botocore_error(error, url) from error


def _tls_context() -> Any:
    """Trusts the certificate authorities that boto3 trusts."""
    import ssl

    from botocore.httpsession import where

    return ssl.create_default_context(cafile=where())


def _as_botocore_error(error: Exception, url: str) -> Exception:
    import aiohttp
    import botocore.exceptions as ours

    if isinstance(error, aiohttp.ClientSSLError):
        return ours.SSLError(endpoint_url=url, error=error)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ours.ConnectTimeoutError(endpoint_url=url, error=error)
    if isinstance(error, asyncio.TimeoutError):
        return ours.ReadTimeoutError(endpoint_url=url, error=error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return ours.EndpointConnectionError(endpoint_url=url, error=error)
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return ours.ConnectionClosedError(endpoint_url=url, error=error)
    return ours.HTTPClientError(error=error)
