"""botocore's Signature Version 4 for requests that are made here, with a third of the work for each.

botocore keeps headers in an `email.message.Message`, selects and sorts them twice, and derives the signing key for each
request. Here headers are a plain dictionary, and the key of a day is cached. The signature is the same.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from botocore.auth import SigV4Auth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import ReadOnlyCredentials

__all__ = ["Signature", "Unsigned"]


@dataclass
class Unsigned:
    """The parts of a request that botocore's signer reads, and the headers that it adds to.

    Attributes:
        url: the whole URL, with an encoded path and without a query.
        headers: the headers, with `Host`, and without headers that botocore does not sign.
        body: the body of the request.
    """

    url: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"
    params: Mapping[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


class Signature(SigV4Auth):
    """Signs an `Unsigned`, as `SigV4Auth` signs an `AWSRequest`.

    Args:
        credentials: what to sign with.
        service: the signing name of the service.
        region: the region.
    """

    def __init__(self, credentials: ReadOnlyCredentials, service: str, region: str) -> None:
        super().__init__(credentials, service, region)
        self._scope = region, service

    def add_auth(self, request: Any) -> None:
        """Add the headers of the signature to an `Unsigned`."""
        super().add_auth(request)

    def headers_to_sign(self, request: Any) -> Any:
        """All headers, by their names in lower case and in the order of these."""
        return dict(sorted((name.lower(), value) for name, value in request.headers.items()))

    def canonical_headers(self, headers_to_sign: Any) -> str:
        """A line for each header."""
        return "\n".join(f"{name}:{' '.join(value.split())}" for name, value in headers_to_sign.items())

    def signed_headers(self, headers_to_sign: Any) -> str:
        """The names of these headers, separated by semicolons."""
        return ";".join(headers_to_sign)

    def signature(self, string_to_sign: str, request: Any) -> str:
        """The signature of a text."""
        day = request.context["timestamp"][:8]
        return _hmac(_signing_key(self.credentials.secret_key, day, *self._scope), string_to_sign).hex()


@lru_cache(maxsize=4)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """The key of a day ("Create a signed AWS API request", IAM User Guide)."""
    key = f"AWS4{secret}".encode()
    for text in (day, region, service, "aws4_request"):
        key = _hmac(key, text)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), hashlib.sha256)
