"""The objects of S3 in the local AWS: the memory that they take, and the conditions of copies."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.aws import LocalAws

SIZE, COUNT = 1_000_000, 6


@pytest.fixture(scope="module", name="s3")
def _s3(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with LocalAws(tmp_path_factory.mktemp("aws")) as aws:
        yield aws.client("s3")


def test_versions_and_copies_take_a_byte_for_each_byte_that_is_stored(s3: Any) -> None:
    s3.create_bucket(Bucket="versions")
    s3.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    store_and_copy(s3, 1)  # what the first requests import and keep is not counted
    with Traced() as traced:
        store_and_copy(s3, COUNT)
        for _ in range(2):
            found = s3.list_object_versions(Bucket="versions", MaxKeys=5)["Versions"]
    assert (len(found), {each["Size"] for each in found}) == (5, {SIZE})
    assert traced.bytes / (2 * COUNT * SIZE) < 1.1


def test_a_part_of_a_source_that_has_changed_is_not_copied(s3: Any) -> None:
    s3.create_bucket(Bucket="parts")
    expected = s3.put_object(Bucket="parts", Key="source", Body=b"before")["ETag"]
    s3.put_object(Bucket="parts", Key="source", Body=b"after")
    upload = s3.create_multipart_upload(Bucket="parts", Key="target")["UploadId"]
    part = {"Bucket": "parts", "Key": "target", "UploadId": upload, "PartNumber": 1}
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.upload_part_copy(**part, CopySource={"Bucket": "parts", "Key": "source"}, CopySourceIfMatch=expected)


def content(number: int) -> bytes:
    return bytes([number]) * SIZE


def store_and_copy(s3: Any, count: int) -> None:
    for number in range(count):
        s3.put_object(Bucket="versions", Key="one", Body=content(number))
        copied(s3, "versions", "one", f"copies/{number}")


def copied(s3: Any, bucket: str, source: str, target: str) -> None:
    """Copy an object as the functions do."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key=target)["UploadId"]
    place = {"Bucket": bucket, "Key": source}
    part = s3.upload_part_copy(Bucket=bucket, Key=target, UploadId=upload, PartNumber=1, CopySource=place)
    parts = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
    s3.complete_multipart_upload(Bucket=bucket, Key=target, UploadId=upload, MultipartUpload={"Parts": parts})


class Traced:
    """The bytes of Python's objects that were made within, and are still there."""

    bytes = 0

    def __enter__(self) -> Traced:
        gc.collect()
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()
        self.bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
