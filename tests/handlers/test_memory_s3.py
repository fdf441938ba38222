"""The S3 in memory answers as moto does, in everything that the handlers lean on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from memory_aws import S3, Client, Clock, Wire

BUCKET = "the-bucket"


@pytest.fixture(params=["memory", "moto"])
def s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "memory":
        yield Client("s3", S3(Clock()), Wire())
        return
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


def put(s3: Any, key: str, body: bytes, **condition: str) -> str:
    return str(s3.put_object(Bucket=BUCKET, Key=key, Body=body, **condition)["ETag"])


def begin(s3: Any, key: str) -> str:
    return str(s3.create_multipart_upload(Bucket=BUCKET, Key=key, Metadata={"artifact-key": "k"})["UploadId"])


def copy(s3: Any, upload: str, source: str, **more: Any) -> str:
    answer = s3.upload_part_copy(
        Bucket=BUCKET,
        Key="copy",
        UploadId=upload,
        PartNumber=1,
        CopySource={"Bucket": BUCKET, "Key": source},
        **more,
    )
    return str(answer["CopyPartResult"]["ETag"])


def complete(s3: Any, upload: str, etag: str) -> Any:
    return s3.complete_multipart_upload(
        Bucket=BUCKET,
        Key="copy",
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]},
        IfNoneMatch="*",
    )


def completed_twice(s3: Any) -> None:
    etag = put(s3, "a", b"content")
    uploads = [begin(s3, "copy"), begin(s3, "copy")]
    parts = [copy(s3, upload, "a", CopySourceIfMatch=etag) for upload in uploads]
    complete(s3, uploads[0], parts[0])
    complete(s3, uploads[1], parts[1])


def completed_again(s3: Any) -> None:
    etag = put(s3, "a", b"content")
    upload = begin(s3, "copy")
    complete(s3, upload, copy(s3, upload, "a", CopySourceIfMatch=etag))
    s3.list_parts(Bucket=BUCKET, Key="copy", UploadId=upload)


REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "head of nothing": (lambda s3: s3.head_object(Bucket=BUCKET, Key="a"), "404"),
    "get of nothing": (lambda s3: s3.get_object(Bucket=BUCKET, Key="a"), "NoSuchKey"),
    "put where something is": (lambda s3: [put(s3, "a", b"1"), put(s3, "a", b"2", IfNoneMatch="*")], "Precondition"),
    "put over another": (lambda s3: [put(s3, "a", b"1"), put(s3, "a", b"2", IfMatch='"x"')], "PreconditionFailed"),
    "put over nothing": (lambda s3: put(s3, "a", b"2", IfMatch='"x"'), "NoSuchKey"),
    "get of another": (
        lambda s3: [put(s3, "a", b"1"), s3.get_object(Bucket=BUCKET, Key="a", IfMatch='"x"')],
        "PreconditionFailed",
    ),
    "parts of no upload": (lambda s3: s3.list_parts(Bucket=BUCKET, Key="copy", UploadId="none"), "NoSuchUpload"),
    "completed where something is": (completed_twice, "PreconditionFailed"),
    "parts of a completed upload": (completed_again, "NoSuchUpload"),
}


@pytest.mark.slow
def test_objects_are_listed_by_prefix(s3: Any) -> None:
    etag = put(s3, "a/2", b"22")
    put(s3, "a/1", b"1")
    put(s3, "b", b"1")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="a/")
    found = [(each["Key"], each["Size"], each["ETag"]) for page in pages for each in page["Contents"]]
    assert [name for name, _, _ in found] == ["a/1", "a/2"]
    assert found[1] == ("a/2", 2, etag)
    rest = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="a/", StartAfter="a/1")
    assert [each["Key"] for page in rest for each in page["Contents"]] == ["a/2"]
    assert not [
        page for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="c") if "Contents" in page
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_rejected(s3: Any, name: str) -> None:
    act, code = REFUSALS[name]
    with pytest.raises(ClientError) as refused:
        act(s3)
    assert refused.value.response["Error"]["Code"].startswith(code)


@pytest.mark.slow
def test_what_is_read_is_what_was_written(s3: Any) -> None:
    etag = put(s3, "a", b"0123456789")

    assert s3.head_object(Bucket=BUCKET, Key="a")["ETag"] == etag
    found = s3.get_object(Bucket=BUCKET, Key="a", Range="bytes=2-4", IfMatch=etag)
    assert (b"".join(found["Body"].iter_chunks(2)), found["ETag"], found["ContentLength"]) == (b"234", etag, 3)
    assert s3.get_object(Bucket=BUCKET, Key="a", Range="bytes=8-20")["Body"].read() == b"89"
    assert put(s3, "a", b"another", IfMatch=etag) != etag
    assert put(s3, "b", b"0123456789", IfNoneMatch="*") == etag


@pytest.mark.slow
def test_a_copy_in_parts(s3: Any) -> None:
    etag = put(s3, "a", b"content")
    upload = begin(s3, "copy")
    part = copy(s3, upload, "a", CopySourceIfMatch=etag)

    listed = s3.list_multipart_uploads(Bucket=BUCKET, Prefix="copy")["Uploads"]
    assert [(found["Key"], found["UploadId"]) for found in listed] == [("copy", upload)]
    parts = s3.list_parts(Bucket=BUCKET, Key="copy", UploadId=upload)["Parts"]
    assert [(found["PartNumber"], found["ETag"], found["Size"]) for found in parts] == [(1, part, 7)]

    complete(s3, upload, part)

    found = s3.head_object(Bucket=BUCKET, Key="copy")
    assert (found["ContentLength"], found["Metadata"]) == (7, {"artifact-key": "k"})
    assert s3.list_multipart_uploads(Bucket=BUCKET, Prefix="copy").get("Uploads", []) == []
    assert complete_etag(s3) == found["ETag"]


def complete_etag(s3: Any) -> str:
    """Of the content's one part, as S3 computes it: the digest of digests, and their number."""
    digest = hashlib.md5(b"content", usedforsecurity=False).digest()
    return f'"{hashlib.md5(digest, usedforsecurity=False).hexdigest()}-1"'
