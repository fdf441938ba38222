"""Sends one prepared request again and again, with as little work for each as possible.

The body and its hash are made once. The signature is made once a second, because AWS takes it for some minutes
("Authenticating Requests", AWS Signature Version 4), and so do the credentials.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from cdk_triton.sagemaker.limits import MAX_INVOCATION_SECONDS

if TYPE_CHECKING:
    from cdk_triton.cli.artifacts.aws import Aws
    from cdk_triton.cli.requests.kserve import Body

__all__ = ["Prepared", "Send", "prepared", "sender"]

Send = Callable[[], Awaitable[str]]
"""Sends the request, and gives the code of the error; "" for a good answer."""

_SIGNED_SECONDS = 1.0
_BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="
_TIMEOUT = aiohttp.ClientTimeout(total=MAX_INVOCATION_SECONDS + 10, sock_connect=10)


@dataclass(frozen=True)
class Prepared:
    """A request without its signature.

    Attributes:
        url: its address.
        headers: its headers.
        body: its body.
        sign: gives all headers, the signature included.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    sign: Callable[[], Mapping[str, str]]


def prepared(
    aws: Aws, endpoint: str, body: Body, *, target: str | None, component: str | None, variant: str | None
) -> Prepared:
    """The request to an endpoint, with binary tensors as `TritonClient` sends them."""
    from tritonclient.http import InferenceServerClient, InferRequestedOutput

    wanted = [InferRequestedOutput(name, binary_data=True) for name in body.outputs]
    content, size = InferenceServerClient.generate_request_body(
        body.inputs, outputs=wanted or None, request_id=body.request_id, parameters=dict(body.parameters)
    )
    runtime = aws.client("sagemaker-runtime")
    url = f"{runtime.meta.endpoint_url.rstrip('/')}/endpoints/{quote(endpoint, safe='')}/invocations"
    named = {
        "X-Amzn-SageMaker-Target-Model": target,
        "X-Amzn-SageMaker-Inference-Component": component,
        "X-Amzn-SageMaker-Target-Variant": variant,
    }
    headers = {
        "Content-Type": "application/json" if size is None else f"{_BINARY}{size}",
        "X-Amz-Content-SHA256": hashlib.sha256(content).hexdigest(),
        **{name: value for name, value in named.items() if value is not None},
    }
    signer = _Signer(aws.credentials(), aws.region, url, headers, bytes(content))
    return Prepared(url, headers, bytes(content), signer)


class _Signer:
    """Signs once a second."""

    def __init__(self, credentials: Any, region: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self._credentials, self._region = credentials, region
        self._url, self._headers, self._body = url, headers, body
        self._signed: Mapping[str, str] = {}
        self._until = 0.0

    def __call__(self) -> Mapping[str, str]:
        now = time.monotonic()
        if now >= self._until:
            request = AWSRequest("POST", self._url, headers=dict(self._headers), data=self._body)
            SigV4Auth(self._credentials.get_frozen_credentials(), "sagemaker", self._region).add_auth(request)
            self._signed, self._until = dict(request.headers.items()), now + _SIGNED_SECONDS
        return self._signed


@asynccontextmanager
async def sender(request: Prepared) -> AsyncIterator[Send]:
    """A function that sends the request, over connections that are kept."""
    connector = aiohttp.TCPConnector(limit=0)  # the load bounds what is under way
    async with aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, trust_env=True) as session:

        async def send() -> str:
            try:
                async with session.post(request.url, data=request.body, headers=request.sign()) as answer:
                    content = await answer.read()
                    return "" if answer.status < 400 else _code(answer.status, answer.headers, content)
            except TimeoutError:
                return "no answer in time"
            except BotoCoreError as error:  # credentials that have expired, and no new ones come
                return f"not signed ({type(error).__name__})"
            except aiohttp.ClientError as error:
                return f"no connection ({type(error).__name__})"

        yield send


def _code(status: int, headers: Mapping[str, str], content: bytes) -> str:
    named = headers.get("x-amzn-ErrorType", "").partition(":")[0]
    found = re.search(rb'"OriginalStatusCode":\s*(\d+)', content)
    original = f" {found[1].decode()}" if found else ""
    return f"{named or f'HTTP {status}'}{original}"
