"""Uploads to the bucket of the CDK's bootstrap, as `cdk deploy` would, the missing files that a build plan reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.assembly import Asset
from cdk_triton.cli.artifacts.aws import Aws, code_of
from cdk_triton.errors import StoreError

__all__ = ["Publisher"]

_PART_BYTES: Final = 16 << 20
_MAX_PARTS: Final = 10_000
_UPLOADS: Final = 4  # parts in flight and in memory at once
_LOST = frozenset({"PreconditionFailed", "412"})


class Publisher:
    """Uploads to the bucket of the CDK's bootstrap, with the role that the bootstrap has for this, if it has one.

    Args:
        aws: the account and region.
        account: the account's id; nothing is uploaded to a bucket of another account.
        say: called with a line for each file that is uploaded.
    """

    def __init__(self, aws: Aws, account: str, say: Callable[[str], None]) -> None:
        self._aws = aws
        self._owner = {"ExpectedBucketOwner": account}
        self._say = say
        self._clients: dict[str | None, Any] = {}

    def publish(self, asset: Asset) -> None:
        """Upload a file if its object is absent.

        Raises:
            StoreError: the file is missing.
            ClientError, BotoCoreError: a call failed.
        """
        s3 = self._client(asset)
        if self._is_there(s3, asset):
            return
        if not asset.path.is_file():
            raise StoreError(f"the cloud assembly lacks {asset.path}, which has to be uploaded: run `cdk synth` again")
        size = asset.path.stat().st_size
        self._say(f"uploading {asset.key} ({size:,} bytes)")
        try:
            if size <= _PART_BYTES:
                self._put(s3, asset, asset.path.read_bytes())
            else:
                self._upload(s3, asset, size)
        except ClientError as error:
            if code_of(error) not in _LOST:  # otherwise somebody else was faster, with the same content
                raise

    def publish_text(self, like: Asset, key: str, text: bytes) -> None:
        """Write a small object beside an asset, if it is absent."""
        asset = Asset(like.path, like.bucket, key, like.role, like.external_id)
        s3 = self._client(asset)
        if not self._is_there(s3, asset):
            try:
                self._put(s3, asset, text)
            except ClientError as error:
                if code_of(error) not in _LOST:
                    raise

    def _client(self, asset: Asset) -> Any:
        if asset.role not in self._clients:
            self._clients[asset.role] = self._aws.client("s3")
            if asset.role is not None:
                try:
                    self._clients[asset.role] = self._aws.client_as("s3", asset.role, asset.external_id)
                except ClientError as error:  # as the cdk CLI does: the caller's own rights may be enough
                    self._say(
                        f"cannot assume the role {asset.role} ({code_of(error)}); trying the caller's own permissions"
                    )
        return self._clients[asset.role]

    def _is_there(self, s3: Any, asset: Asset) -> bool:
        try:
            s3.head_object(Bucket=asset.bucket, Key=asset.key, **self._owner)
        except ClientError as error:
            if code_of(error) == "404":
                return False
            raise
        return True

    def _put(self, s3: Any, asset: Asset, body: bytes) -> None:
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=body, IfNoneMatch="*", **self._owner)

    def _upload(self, s3: Any, asset: Asset, size: int) -> None:
        """In parts, because one request takes 5 GB at most; boto3's own transfer does not have conditions."""
        place = {"Bucket": asset.bucket, "Key": asset.key, **self._owner}
        upload = s3.create_multipart_upload(**place)["UploadId"]
        try:
            send = partial(_send, s3, asset.path, place, upload)
            with ThreadPoolExecutor(_UPLOADS) as pool:
                parts = list(pool.map(send, _spans(size)))
            s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
        except BaseException:  # an interruption too: parts that nobody completes cost money
            s3.abort_multipart_upload(**place, UploadId=upload)
            raise


def _spans(size: int) -> Iterator[tuple[int, int, int]]:
    """Number, offset and length of each part."""
    length = max(_PART_BYTES, -(-size // _MAX_PARTS))
    for number, offset in enumerate(range(0, size, length), start=1):
        yield number, offset, min(length, size - offset)


def _send(s3: Any, path: Path, place: dict[str, str], upload: str, span: tuple[int, int, int]) -> dict[str, Any]:
    number, offset, length = span
    with path.open("rb") as file:
        file.seek(offset)
        body = file.read(length)
    answer = s3.upload_part(**place, UploadId=upload, PartNumber=number, Body=body)
    return {"PartNumber": number, "ETag": answer["ETag"]}
