"""The S3 calls. Each write has a condition: it replaces only an object that was read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from .clients import client
from .failure import ArtifactError, error_code

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["LostRaceError", "OtherRegionError", "Storage", "StoredObject", "TooLargeError"]

CHUNK_BYTES = 1024 * 1024

_MISSING = frozenset({"404", "NoSuchKey"})
_LOST = frozenset({"412", "PreconditionFailed", "NoSuchUpload"})
_FORBIDDEN = frozenset({"403", "AccessDenied"})
_READS = frozenset({"GetObject", "HeadObject"})


_CROSS_REGION = "do not support cross-region requests"
"""In S3's AccessDenied for a copy from another region through a VPC endpoint ("Why can't I copy an object between two
Amazon S3 buckets?", https://repost.aws/knowledge-center/s3-troubleshoot-copy-between-buckets; boto/boto3#3270)."""


class LostRaceError(Exception):
    """The condition of a call did not hold: another caller has written the object, or completed the upload."""


class OtherRegionError(Exception):
    """S3 does not copy from another region if the request passes a VPC endpoint."""


class TooLargeError(ArtifactError):
    """An object that somebody else may have written is larger than the function reads."""

    def __init__(self, name: str, size: int, most: int) -> None:
        super().__init__(f"{name} has {size:,} bytes, but at most {most:,} bytes are allowed")


@dataclass(frozen=True)
class StoredObject:
    """An object as S3 describes it. `modified` is from S3's clock, and `version` is set if one was requested."""

    bucket: str
    key: str
    size: int
    etag: str
    modified: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class Storage:
    """The store's bucket through a boto3 client; safe to use from several threads, as the client is."""

    s3: S3Client
    bucket: str

    @classmethod
    def of_environment(cls) -> Storage:
        """The storage of this function, from its environment variable `STORE_BUCKET`."""
        return cls(client("s3"), os.environ["STORE_BUCKET"])

    def head(self, key: str, *, bucket: str | None = None, version: str | None = None) -> StoredObject | None:
        """The object's description; None if the object does not exist."""
        where = self.bucket if bucket is None else bucket
        with _translated(where, key):
            try:
                found = self.s3.head_object(Bucket=where, Key=key, **_version(version))
            except ClientError as error:
                if error_code(error) in _MISSING:
                    return None
                raise
        size, etag, modified = found["ContentLength"], found["ETag"], found["LastModified"]
        return StoredObject(where, key, size, etag, modified, found.get("Metadata", {}), version)

    def read(self, key: str, *, bucket: str | None = None, most: int | None = None) -> tuple[bytes, str] | None:
        """The object's content and ETag; None if the object does not exist.

        Args:
            key: the object key.
            bucket: its bucket; by default that of the store.
            most: the most bytes that it may have, if somebody else may have written it.

        Raises:
            TooLargeError: the object has more bytes.
        """
        where = self.bucket if bucket is None else bucket
        with _translated(where, key):
            try:
                found = self.s3.get_object(Bucket=where, Key=key)
            except ClientError as error:
                if error_code(error) in _MISSING:
                    return None
                raise
            if most is not None and found["ContentLength"] > most:
                found["Body"].close()
                raise TooLargeError(f"s3://{where}/{key}", found["ContentLength"], most)
            return found["Body"].read(), found["ETag"]

    def open(self, key: str) -> tuple[StoredObject, Iterator[bytes]] | None:
        """The object's description and its bytes, in pieces of 1 MiB; None if the object does not exist."""
        with _translated(self.bucket, key):
            try:
                found = self.s3.get_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error_code(error) in _MISSING:
                    return None
                raise
            size, etag, modified = found["ContentLength"], found["ETag"], found["LastModified"]
            described = StoredObject(self.bucket, key, size, etag, modified, found.get("Metadata", {}))
            return described, found["Body"].iter_chunks(CHUNK_BYTES)

    def keys(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """The object keys below a prefix, in order, without those up to and including `after`.

        They are listed as they are taken, 1,000 at a time.
        """
        start: Any = {"StartAfter": after} if after else {}
        with _translated(self.bucket, prefix):
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, **start):
                yield from (each["Key"] for each in page.get("Contents", []))

    def chunks(self, source: StoredObject, first: int, size: int) -> Iterator[bytes]:
        """The bytes of an object from `first` on, in pieces of 1 MiB.

        Raises:
            LostRaceError: the object has changed since it was described.
        """
        with _translated(source.bucket, source.key):
            found = self.s3.get_object(
                Bucket=source.bucket,
                Key=source.key,
                Range=f"bytes={first}-{first + size - 1}",
                IfMatch=source.etag,
                **_version(source.version),
            )
            yield from found["Body"].iter_chunks(CHUNK_BYTES)

    def write(self, key: str, body: bytes, *, replacing: str | None = None) -> str:
        """Write a JSON object if it is absent, or if it still has the ETag `replacing`; return its new ETag.

        Raises:
            LostRaceError: the object is there, or has another ETag.
        """
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if replacing is None else {"IfMatch": replacing}
        with _translated(self.bucket, key):
            answer = self.s3.put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType="application/json", **condition
            )
        return answer["ETag"]

    def begin_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begin a multipart upload. One that is never completed expires by the bucket's lifecycle rule."""
        with _translated(self.bucket, key):
            return self.s3.create_multipart_upload(Bucket=self.bucket, Key=key, Metadata=metadata)["UploadId"]

    def oldest_upload(self, key: str, *, since: datetime) -> str | None:
        """The oldest upload to this very key that began at `since` or later."""
        with _translated(self.bucket, key):
            pages = self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=key)
            found = [
                u for page in pages for u in page.get("Uploads", []) if u["Key"] == key and u["Initiated"] >= since
            ]
        return min(((u["Initiated"], u["UploadId"]) for u in found), default=(since, None))[1]

    def parts(self, key: str, upload: str) -> dict[int, str]:
        """The ETags of an upload's parts by their numbers.

        Raises:
            LostRaceError: the upload has been completed or has expired.
        """
        with _translated(self.bucket, key):
            pages = self.s3.get_paginator("list_parts").paginate(Bucket=self.bucket, Key=key, UploadId=upload)
            return {part["PartNumber"]: part["ETag"] for page in pages for part in page.get("Parts", [])}

    def copy_part(self, source: StoredObject, key: str, upload: str, number: int, span: str | None) -> str:
        """Copy a part on the server side and return its ETag.

        Args:
            source: the source of the bytes, which must not have changed since it was described.
            key: the upload's object key.
            upload: the upload's id.
            number: the part's number, from 1.
            span: `bytes=first-last`, or None for the whole source.

        Raises:
            LostRaceError: the upload has been completed or has expired, or the source has changed.
            OtherRegionError: S3 cannot copy from this source, which `send_part` can read.
        """
        copied: dict[str, Any] = {} if span is None else {"CopySourceRange": span}
        place: Any = {"Bucket": source.bucket, "Key": source.key, **_version(source.version)}
        with _translated(source.bucket, source.key):
            answer = self.s3.upload_part_copy(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload,
                PartNumber=number,
                CopySource=place,
                CopySourceIfMatch=source.etag,
                **copied,
            )
        return answer["CopyPartResult"]["ETag"]

    def send_part(self, source: StoredObject, key: str, upload: str, number: int, span: str | None) -> str:
        """Read a part and write it, which takes this function's memory and network; else like `copy_part`."""
        part: dict[str, Any] = {} if span is None else {"Range": span}
        with _translated(source.bucket, source.key):
            found = self.s3.get_object(
                Bucket=source.bucket, Key=source.key, IfMatch=source.etag, **part, **_version(source.version)
            )
            body = found["Body"].read()
        with _translated(self.bucket, key):
            sent = self.s3.upload_part(Bucket=self.bucket, Key=key, UploadId=upload, PartNumber=number, Body=body)
        return sent["ETag"]

    def complete_upload(self, key: str, upload: str, parts: Mapping[int, str]) -> None:
        """Turn the upload into the object, if the object does not exist.

        Raises:
            LostRaceError: the object exists, or the upload has been completed or has expired.
        """
        with _translated(self.bucket, key):
            self.s3.complete_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload,
                MultipartUpload={"Parts": [{"PartNumber": n, "ETag": parts[n]} for n in sorted(parts)]},
                IfNoneMatch="*",
            )


def _version(version: str | None) -> Any:
    return {} if version is None else {"VersionId": version}


@contextmanager
def _translated(bucket: str, key: str) -> Iterator[None]:
    """Turn a lost race into its own exception, and add the object's name to other errors, because botocore omits it."""
    try:
        yield
    except ClientError as error:
        if error_code(error) in _LOST:
            raise LostRaceError(f"s3://{bucket}/{key}") from error
        if _CROSS_REGION in str(error):
            raise OtherRegionError(f"s3://{bucket}/{key}") from error
        if error_code(error) in _FORBIDDEN and error.operation_name in _READS:
            error.add_note("(if the caller may not list the bucket, a missing object gives the same error)")
        error.add_note(f"(s3://{bucket}/{key})")
        raise
