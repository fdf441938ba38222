"""Who may not use the local AWS: web pages, whatever they send and whatever name they make lead to this machine."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

import pytest

from cdk_triton.local.aws import LocalAws

if TYPE_CHECKING:
    from golden_messages import Messages

PATHS = {
    "endpoint": ("POST", "/endpoints/e/invocations"),
    "function": ("POST", "/2015-03-31/functions/f/invocations"),
    "preflight": ("OPTIONS", "/2015-03-31/functions"),
    "reset": ("POST", "/moto-api/reset"),
    "bucket": ("GET", "/"),
}


def send(aws: LocalAws, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port_of(aws))
    connection.request(method, path, b"body" if method == "POST" else None, headers)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def port_of(aws: LocalAws) -> int:
    return int(aws.url.rsplit(":", 1)[1])


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.com"},
        {"Origin": "null"},
        {"origin": "http://127.0.0.1:8888"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=["a page", "a page without a name", "a page of this machine", "an image", "an image of this machine"],
)
def test_a_web_page_is_refused(
    messages: Messages, local_aws: LocalAws, path: tuple[str, str], headers: dict[str, str]
) -> None:
    status, answered, sentence = send(local_aws, *path, headers)
    assert status == 403
    messages.record("HTTP 403", sentence)
    assert not any(name.startswith("access-control-") for name in answered)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "localhost:1", ""])
def test_another_host_is_refused(messages: Messages, local_aws: LocalAws, path: tuple[str, str], host: str) -> None:
    status, _, sentence = send(local_aws, *path, {"Host": host.format(port=port_of(local_aws))})
    assert status == 403
    here = f"127.0.0.1:{port_of(local_aws)}"
    assert here in sentence
    messages.record("HTTP 403", sentence.replace(here, "HERE"))


def test_a_refused_reset_resets_nothing(local_aws: LocalAws) -> None:
    local_aws.client("s3").create_bucket(Bucket="stays")
    send(local_aws, "POST", "/moto-api/reset", {"Origin": "https://example.com"})
    assert "stays" in [each["Name"] for each in local_aws.client("s3").list_buckets()["Buckets"]]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_this_machine_itself_is_answered(local_aws: LocalAws, host: str) -> None:
    status, _, body = send(local_aws, "POST", PATHS["endpoint"][1], {"Host": f"{host}:{port_of(local_aws)}"})
    assert (status, body) == (200, "body")


def test_what_a_person_types_into_a_browser_is_answered(local_aws: LocalAws) -> None:
    assert send(local_aws, "GET", "/moto-api/", {"Sec-Fetch-Site": "none"})[0] == 200
