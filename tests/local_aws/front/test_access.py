"""Who may not use the local AWS: web pages, whatever they send and whatever name they make lead to this machine."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import Signed

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
def test_a_web_page_is_rejected(messages: Messages, local_aws: LocalAws, headers: dict[str, str]) -> None:
    for method, path in PATHS.values():
        status, answered, sentence = send(local_aws, method, path, headers)
        assert status == 403, path
        messages.record("HTTP 403", sentence)
        assert not any(name.startswith("access-control-") for name in answered), path


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "localhost:1", ""])
def test_another_host_is_rejected(messages: Messages, local_aws: LocalAws, host: str) -> None:
    here = f"127.0.0.1:{port_of(local_aws)}"
    for method, path in PATHS.values():
        status, _, sentence = send(local_aws, method, path, {"Host": host.format(port=port_of(local_aws))})
        assert status == 403, path
        assert here in sentence
        messages.record("HTTP 403", sentence.replace(here, "HERE"))


def test_a_rejected_reset_resets_nothing(local_aws: LocalAws) -> None:
    local_aws.client("s3").create_bucket(Bucket="stays")
    send(local_aws, "POST", "/moto-api/reset", {"Origin": "https://example.com"})
    assert "stays" in [each["Name"] for each in local_aws.client("s3").list_buckets()["Buckets"]]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_this_machine_itself_is_answered(local_aws: LocalAws, signed: Signed, host: str) -> None:
    method, path = PATHS["endpoint"]
    headers = signed(local_aws, method, path, b"body", {"Host": f"{host}:{port_of(local_aws)}"})
    status, _, body = send(local_aws, method, path, headers)
    assert (status, body) == (200, "body")


@pytest.mark.parametrize(
    "signature",
    [
        None,
        {"secret": "local"},
        {"secret": ""},
        {"replace": ("localMODEL", "AKIAOTHER")},
        {"replace": ("Signature=", "Signature=0")},
        {"replace": ("SignedHeaders=host;", "SignedHeaders=")},
        {"replace": ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")},
    ],
    ids=["none", "another", "empty", "another key", "changed", "other headers", "another algorithm"],
)
def test_who_does_not_know_the_secret_is_rejected(
    messages: Messages, local_aws: LocalAws, signed: Signed, signature: dict[str, Any] | None
) -> None:
    for method, path in PATHS.values():
        headers: dict[str, str] = {}
        if signature is not None:
            secret = signature.get("secret")
            headers = signed(local_aws, method, path, b"body" if method == "POST" else b"", secret=secret)
            old, new = signature.get("replace", ("", ""))
            headers["Authorization"] = headers["Authorization"].replace(old.replace("MODEL", local_aws.account), new)
        status, _, answer = send(local_aws, method, path, headers)
        assert status == 403, path
        said = json.loads(answer)["message"].replace(str(local_aws.directory), "DIRECTORY")
        messages.record("InvalidClientTokenId", said)


@pytest.mark.parametrize("service", ["s3", "sts", "sagemaker", "lambda", "cloudformation"])
def test_an_sdk_shows_the_sentence(local_aws: LocalAws, service: str) -> None:
    client = boto3.client(
        service,  # type: ignore[call-overload]  # the stubs know only names written out
        endpoint_url=local_aws.url,
        region_name=local_aws.region,
        aws_access_key_id=f"local{local_aws.account}",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    calls = {
        "s3": lambda: client.list_buckets(),
        "sts": lambda: client.get_caller_identity(),
        "sagemaker": lambda: client.list_models(),
        "lambda": lambda: client.list_functions(),
        "cloudformation": lambda: client.list_stacks(),
    }
    with pytest.raises(ClientError, match=f"cdk-triton local status --directory {local_aws.directory}") as rejected:
        calls[service]()
    assert rejected.value.response["Error"]["Code"] == "InvalidClientTokenId"


def test_each_local_aws_has_a_secret_of_its_own(tmp_path: Path) -> None:
    secrets = {LocalAws(tmp_path)._secret for _ in range(3)}
    assert len(secrets) == 3
    assert {len(secret) for secret in secrets} == {40}


def test_the_credentials_of_an_assumed_role_are_accepted(local_aws: LocalAws) -> None:
    arn = f"arn:aws:iam::{local_aws.account}:role/some"
    issued = local_aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")["Credentials"]
    session = boto3.Session(issued["AccessKeyId"], issued["SecretAccessKey"], issued["SessionToken"])
    s3 = session.client("s3", endpoint_url=local_aws.url, region_name=local_aws.region, config=Config(proxies={}))
    s3.create_bucket(Bucket="assumed")
    # What a path, a query and a header may hold.
    key = "a b/ä+%20~*'()!$&=@:;,?#//./x"
    s3.put_object(Bucket="assumed", Key=key, Body=b"x", Metadata={"under_score": "two  blanks"})
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="assumed", Prefix="a b/ä+")["Contents"]] == [key]
    assert s3.get_object(Bucket="assumed", Key=key)["Body"].read() == b"x"


def test_a_path_is_encoded_twice_in_what_is_signed(local_aws: LocalAws) -> None:
    """By every service but S3."""
    arn = f"arn:aws:lambda:{local_aws.region}:{local_aws.account}:function:missing"
    with pytest.raises(ClientError) as missing:
        local_aws.client("lambda").get_function(FunctionName=arn)
    assert missing.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_a_url_that_was_signed_is_answered_and_a_changed_one_is_not(local_aws: LocalAws) -> None:
    s3 = local_aws.client("s3")
    s3.create_bucket(Bucket="presigned")
    for key in ("mine", "other"):
        s3.put_object(Bucket="presigned", Key=key, Body=key.encode())
    signer = boto3.client(
        "s3",
        endpoint_url=local_aws.url,
        region_name=local_aws.region,
        aws_access_key_id=local_aws.environment()["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=local_aws.environment()["AWS_SECRET_ACCESS_KEY"],
        config=Config(signature_version="s3v4", proxies={}),
    )
    url = signer.generate_presigned_url("get_object", Params={"Bucket": "presigned", "Key": "mine"})
    path = url.removeprefix(local_aws.url)
    assert send(local_aws, "GET", path, {})[::2] == (200, "mine")
    assert send(local_aws, "GET", path.replace("/mine", "/other"), {})[0] == 403


def exchange(aws: LocalAws, request: bytes) -> bytes:
    """Send bytes and return all that comes until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port_of(aws)), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def head(path: str, headers: dict[str, str]) -> bytes:
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def test_a_body_in_chunks_is_read(local_aws: LocalAws, signed: Signed) -> None:
    path = PATHS["endpoint"][1]
    here = {"Host": f"127.0.0.1:{port_of(local_aws)}"}
    headers = signed(local_aws, "POST", path, b"first and second", here) | {"Transfer-Encoding": "chunked"}
    headers.pop("Content-Length", None)
    request = head(path, headers) + b"6\r\nfirst \r\nA;x=y\r\nand second\r\n0\r\n\r\n"
    # Two of them: the second is read from where the first has ended.
    answers = exchange(local_aws, request + request)
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.count(b"first and second") == 2


@pytest.mark.parametrize("path", [PATHS["endpoint"][1], PATHS["function"][1], "/"])
@pytest.mark.parametrize(
    "framing",
    [
        {"Content-Length": "abc"},
        {"Content-Length": "-1"},
        {"Content-Length": "1_0"},
        {"Content-Length": "4", "content-length": "5"},
        {"Content-Length": "4", "Transfer-Encoding": "chunked"},
        {"Transfer-Encoding": "gzip, chunked"},
    ],
    ids=["letters", "negative", "underscore", "two", "both", "gzip"],
)
def test_a_body_whose_end_nobody_can_say_is_rejected_at_once(
    messages: Messages, local_aws: LocalAws, path: str, framing: dict[str, str]
) -> None:
    answer = exchange(local_aws, head(path, {"Host": f"127.0.0.1:{port_of(local_aws)}", **framing}) + b"body")
    assert answer.startswith(b"HTTP/1.1 400 ")
    messages.record("HTTP 400", answer.partition(b"\r\n\r\n")[2].decode())


@pytest.mark.parametrize("chunks", [b"zz\r\nbody\r\n", b"-4\r\nbody\r\n0\r\n\r\n", b"9\r\nbody"])
def test_malformed_chunks_are_rejected(local_aws: LocalAws, chunks: bytes) -> None:
    headers = {"Host": f"127.0.0.1:{port_of(local_aws)}", "Transfer-Encoding": "chunked"}
    assert exchange(local_aws, head(PATHS["endpoint"][1], headers) + chunks).startswith(b"HTTP/1.1 400 ")


def test_an_invocation_with_a_query_is_answered(local_aws: LocalAws, signed: Signed) -> None:
    path = f"{PATHS['endpoint'][1]}?x=y"
    assert send(local_aws, "POST", path, signed(local_aws, "POST", path, b"body"))[::2] == (200, "body")
