"""Checks that requests are signed with the secret of the local AWS, or with one that it has issued.

Functions, builds and models run programs here, so another user of this machine must not be able to run any. Each local
AWS has a secret of its own, and a request proves by its signature that its sender knows it. The signature is Signature
Version 4 (docs.aws.amazon.com: IAM User Guide, "Create a signed AWS API request"), in the header or in the URL. Bodies
are not compared with the digests that were signed, and times are not checked, because nobody is between client and
server on the loopback interface.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from botocore.utils import normalize_url_path

__all__ = ["Signatures", "SignedRequest", "key_and_service"]

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_FIELD: Final = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
_CONTENT_HASH: Final = "x-amz-content-sha256"
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True)
class SignedRequest:
    """A request as it came.

    Attributes:
        method: the HTTP method.
        target: path and query, as the first line of the request has them.
        headers: every key in lower case; the values of a repeated header are joined by commas.
        body: reads the body.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: Callable[[], bytes]


@dataclass(frozen=True)
class _SignatureParts:
    key: str
    scope: str  # date/region/service/aws4_request
    time: str
    signed_headers: tuple[str, ...]
    signature: str
    payload: str  # a digest, or the name of a kind of payload; "" where the body has to be hashed


class Signatures:
    """Checks signatures.

    Args:
        secret_of: gives the secret of an access key id, or None if there is no such key.
        options: the options, after a space, with which `cdk-triton local status` finds this local AWS.
    """

    def __init__(self, secret_of: Callable[[str], str | None], options: str = "") -> None:
        self._secret_of = secret_of
        self._options = options

    def fault(self, request: SignedRequest) -> str | None:
        """Return the reason to reject a request, and the fix; None for a correct one."""
        reason = self._reason(request)
        fix = f'set the variables in this shell again: eval "$(cdk-triton local status{self._options})"'
        return None if reason is None else f"{reason}; {fix}"

    def _reason(self, request: SignedRequest) -> str | None:
        claim = _claim(request)
        if claim is None:
            return "the request is not signed with Signature Version 4"
        secret = self._secret_of(claim.key)
        if secret is None:
            return f"the access key id {claim.key!r} is not one of this local AWS"
        if not hmac.compare_digest(_signature(request, claim, secret).encode(), claim.signature.encode()):
            return "the request is not signed with the secret of this local AWS"
        return None


def key_and_service(request: SignedRequest) -> tuple[str, str]:
    """The access key id that a request is signed with, and the name of the service in its signature."""
    claim = _claim(request)
    assert claim is not None  # `Signatures.fault` has accepted it
    return claim.key, claim.scope.split("/")[2]


def _claim(request: SignedRequest) -> _SignatureParts | None:
    header = request.headers.get("authorization", "")
    if header.startswith(_ALGORITHM):
        fields = dict(_FIELD.findall(header))
        time, payload = request.headers.get("x-amz-date", ""), request.headers.get(_CONTENT_HASH, "")
    else:
        query = {name: value for name, value in _query(request.target) if name.startswith("X-Amz-")}
        if query.get("X-Amz-Algorithm") != _ALGORITHM:
            return None
        fields = {name: query.get(f"X-Amz-{name}", "") for name in ("Credential", "SignedHeaders", "Signature")}
        time, payload = query.get("X-Amz-Date", ""), query.get("X-Amz-Content-Sha256", "")
        payload = payload or (_UNSIGNED if fields["Credential"].split("/")[-2:-1] == ["s3"] else "")
    key, _, scope = fields.get("Credential", "").partition("/")
    if scope.count("/") != 3 or not fields.get("SignedHeaders") or not fields.get("Signature"):
        return None
    return _SignatureParts(key, scope, time, tuple(fields["SignedHeaders"].split(";")), fields["Signature"], payload)


def _signature(request: SignedRequest, claim: _SignatureParts, secret: str) -> str:
    text = "\n".join((_ALGORITHM, claim.time, claim.scope, _sha256(_canonical(request, claim).encode())))
    key = f"AWS4{secret}".encode()
    for part in claim.scope.split("/"):
        key = _hmac(key, part)
    return _hmac(key, text).hex()


def _canonical(request: SignedRequest, claim: _SignatureParts) -> str:
    path = request.target.partition("?")[0] or "/"
    if claim.scope.split("/")[2] not in ("s3", "s3express"):  # S3 takes a path as it is, others encode it twice
        path = quote(normalize_url_path(path), safe="/~")
    query = sorted((_encoded(name), _encoded(value)) for name, value in _query(request.target))
    lines = [
        request.method,
        path,
        "&".join(f"{name}={value}" for name, value in query if name != "X-Amz-Signature"),
        *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in claim.signed_headers),
        "",
        ";".join(claim.signed_headers),
        claim.payload or _sha256(request.body()),
    ]
    return "\n".join(lines)


def _query(target: str) -> Iterable[tuple[str, str]]:
    for part in filter(None, target.partition("?")[2].split("&")):
        name, _, value = part.partition("=")
        yield unquote(name), unquote(value)


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
