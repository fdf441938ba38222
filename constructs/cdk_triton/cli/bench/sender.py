"""Sends one request again and again, over the runtime of `AsyncTritonClient`.

An open loop may have 2,000 requests under way. Each would need a thread with urllib3, and needs a few kilobytes on an
event loop. `--cold` sends one at a time, and uses urllib3. The signature is made once a second, because AWS accepts it
for some minutes ("Authenticating Requests", AWS Signature Version 4), and so the body is hashed once a second. The
requests of sequences differ, so each of them is written and signed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import botocore.exceptions as aws
from botocore.eventstream import ParserError
from botocore.exceptions import BotoCoreError, ClientError

from cdk_triton.cli.bench.load import MAX_UNDER_WAY, Streamed
from cdk_triton.cli.bench.sequences import SendStep
from cdk_triton.client.aio_runtime import AioRuntime
from cdk_triton.client.runtime import foreign_errors_translated
from cdk_triton.client.streams import STREAM_PERMISSION, AsyncResultStream, bytes_of
from cdk_triton.errors import InvocationError, ModelError

if TYPE_CHECKING:
    import boto3

    from cdk_triton.client.invocation import Invocation
    from cdk_triton.client.scheduling import SequenceStep
    from cdk_triton.client.signed_calls import Call

__all__ = ["NO_BOTO3", "sender", "try_request"]

NO_BOTO3 = "run bench on another machine"
"""The fix for a proxy or a CA bundle of the environment, which would be a part of the measurement."""

_SIGNED_SECONDS = 1.0
_MESSAGE = 300  # characters


@asynccontextmanager
async def sender(
    session: boto3.Session,
    request_at: Callable[[SequenceStep | None], Invocation],
    messages: dict[str, str],
    *,
    stream: bool = False,
) -> AsyncIterator[SendStep]:
    """A function that sends a request, over connections that are kept.

    Args:
        session: region and credentials.
        request_at: the request at a place in a sequence, or outside of one.
        messages: gets the first message of each code of an error.
        stream: whether the answer is read as a stream of results.

    Raises:
        ConfigurationError: the environment sets a proxy or a CA bundle.
    """
    runtime = await AioRuntime.open(MAX_UNDER_WAY, session=session, fix=NO_BOTO3)
    operation = "InvokeEndpointWithResponseStream" if stream else "InvokeEndpoint"
    request = request_at(None)
    signed: Call | None = None
    until = 0.0

    async def call_of(step: SequenceStep | None) -> Call:
        nonlocal signed, until
        if step is not None:
            return await runtime.sign(operation, request_at(step).arguments)
        if signed is None or time.monotonic() >= until:
            signed, until = await runtime.sign(operation, request.arguments), time.monotonic() + _SIGNED_SECONDS
        return signed

    async def sent(step: SequenceStep | None) -> str | Streamed:
        call = await call_of(step)
        if stream:
            return await _streamed(runtime, call, request)
        await runtime.send(operation, call)
        return ""

    async def send(step: SequenceStep | None = None) -> str | Streamed:
        return await _or_code(sent(step), messages)

    try:
        yield send
    finally:
        await runtime.close()


async def try_request(session: boto3.Session, request: Invocation, *, stream: bool) -> None:
    """Send a request once, as the load sends it. A stream is read until its first result.

    Raises:
        ConfigurationError: the environment sets a proxy or a CA bundle.
        InvocationError: the request fails.
    """
    runtime = await AioRuntime.open(1, session=session, fix=NO_BOTO3)
    try:
        with foreign_errors_translated(request.where, STREAM_PERMISSION if stream else ""):
            if not stream:
                await runtime.invoke_endpoint(**request.arguments)
                return
            sent, response = time.monotonic(), await runtime.invoke_endpoint_with_response_stream(**request.arguments)
        async with AsyncResultStream(request, response, sent, None) as results:
            await anext(results, None)
    finally:
        await runtime.close()


async def _or_code(answer: Awaitable[str | Streamed], messages: dict[str, str]) -> str | Streamed:
    """An answer, or the code of the error that comes instead."""
    try:
        return await answer
    except ClientError as error:
        return _noted(messages, _code(error), str(error.response["Error"].get("Message")))
    except ModelError as error:  # of an event within a success
        return _noted(messages, f"ModelError {error.status}", error.original_message)
    except (InvocationError, ParserError) as error:
        return _noted(messages, "no result", str(error))
    except aws.ReadTimeoutError:
        return "no answer in time"
    except (aws.ConnectionError, aws.HTTPClientError) as error:
        return f"no connection ({type(error).__name__})"
    except BotoCoreError as error:  # credentials that have expired, and no new ones come
        return f"not signed ({type(error).__name__})"


async def _streamed(runtime: AioRuntime, call: Call, request: Invocation) -> Streamed:
    """When each result of a stream arrives. The connection is closed if the stream does not end well."""
    response = await runtime.send_for_stream(call)
    reader, moments = request.reader(response, None), []
    with closing(response["Body"]) as body:
        async for event in body:
            for _result in reader.feed(bytes_of(event)):
                moments.append(time.perf_counter())
        for _result in reader.end():
            moments.append(time.perf_counter())
    return Streamed(moments)


def _noted(messages: dict[str, str], code: str, message: str) -> str:
    if code not in messages:
        messages[code] = shorten(message, _MESSAGE, placeholder=" …")
    return code


def _code(error: ClientError) -> str:
    response: Mapping[str, Any] = error.response
    original = response.get("OriginalStatusCode")
    code = str(response["Error"]["Code"])
    named = f"HTTP {code}" if code.isdecimal() else code
    return named if original is None else f"{named} {original}"
