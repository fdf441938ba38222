"""The signer for calls without boto3 writes what botocore's own writes."""

from __future__ import annotations

import datetime
from typing import Any

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from cdk_triton.client.signature import Signature, Unsigned

URL = "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/texts/invocations"
SECRET = ReadOnlyCredentials("AKIA", "secret", None)
TOKEN = ReadOnlyCredentials("ASIA", "other", "token/+=")
HEADERS = {"X-Amzn-SageMaker-Target-Model": "a  b.tar.gz", "Content-Type": "text/x;size=1 "}


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[datetime.datetime]:
    times = [datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.UTC)]
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: times[-1])
    return times


def signed(credentials: ReadOnlyCredentials, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    request = Unsigned(url, {"Host": url.split("/")[2], **headers}, body)
    Signature(credentials, "sagemaker", "eu-west-1").add_auth(request)
    return {name: value for name, value in request.headers.items() if name != "Host"}


def signed_by_botocore(credentials: Any, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    request = AWSRequest("POST", url, headers=dict(headers), data=body)
    SigV4Auth(credentials, "sagemaker", "eu-west-1").add_auth(request)
    return dict(request.headers)


@pytest.mark.parametrize("credentials", [SECRET, TOKEN], ids=["key", "session token"])
@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:8000/endpoints/a%20b/invocations"], ids=["https", "port"])
@pytest.mark.parametrize("body", [b"", bytes(range(256))], ids=["empty", "bytes"])
@pytest.mark.parametrize("headers", [{}, HEADERS], ids=["no header", "headers with spaces"])
def test_a_request_has_the_signature_of_botocore(credentials: Any, url: str, body: bytes, headers: Any) -> None:
    found = signed(credentials, url, headers, body)
    assert "Signature=" in found["Authorization"]
    assert found == signed_by_botocore(credentials, url, headers, body)


def test_the_key_of_one_day_and_one_secret_signs_no_other(now: list[datetime.datetime]) -> None:
    for day in (25, 26):
        now.append(datetime.datetime(2026, 11, day, 23, 59, tzinfo=datetime.UTC))
        for credentials in (SECRET, TOKEN, SECRET):
            assert signed(credentials, URL, {}, b"x") == signed_by_botocore(credentials, URL, {}, b"x")
