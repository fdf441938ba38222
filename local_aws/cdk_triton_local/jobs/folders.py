"""Moves folders between S3 and a directory, as CodeBuild and SageMaker do before and after a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError

__all__ = ["download_folder", "join_key", "upload_files"]

Checkpoint = Callable[[], None]


def _go_on() -> None:
    pass


def download_folder(s3: Any, bucket: str, prefix: str, target: Path, checkpoint: Checkpoint = _go_on) -> int:
    """Download every object below a prefix; returns how many there were.

    Args:
        s3: a boto3 S3 client.
        bucket: where the objects are.
        prefix: what their keys begin with; empty, or with a `/` at its end.
        target: each object goes to its key without the prefix, below this directory, which is made.
        checkpoint: called before each object; may raise to end the download.

    Raises:
        LocalError: S3 rejects a request, or a key leads out of the directory.
    """
    target.mkdir(parents=True, exist_ok=True)
    number = 0
    try:
        for key in _keys(s3, bucket, prefix):
            checkpoint()
            number += 1
            _download(s3, bucket, key, target, key.removeprefix(prefix))
    except ClientError as error:
        details = error.response["Error"]
        raise LocalError(f"{details['Code']}: {details['Message']}: s3://{bucket}/{prefix}") from error
    return number


def _download(s3: Any, bucket: str, key: str, target: Path, name: str) -> None:
    if name.endswith("/") or not name:
        return  # an empty object that a console made to show a folder
    path = target / name
    if not path.resolve().is_relative_to(target.resolve()):
        raise LocalError(
            f"the object {key!r} in bucket {bucket!r} would be written outside the download folder; rename the object"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    s3.download_file(bucket, key, str(path))


def _keys(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from (each["Key"] for each in page.get("Contents", []))


def upload_files(
    s3: Any, directory: Path, files: list[Path], bucket: str, prefix: str, checkpoint: Checkpoint = _go_on
) -> None:
    """Upload files, each to its path below `directory` after the prefix.

    Args:
        s3: a boto3 S3 client.
        directory: the directory to which paths are relative.
        files: the files to upload, below the directory.
        bucket: where they go.
        prefix: what their keys begin with; empty, or with a `/` at its end.
        checkpoint: called before each file; may raise to end the upload.

    Raises:
        LocalError: S3 rejects the upload.
    """
    for path in files:
        checkpoint()
        try:
            s3.upload_file(str(path), bucket, f"{prefix}{path.relative_to(directory).as_posix()}")
        except (ClientError, S3UploadFailedError) as error:
            raise LocalError(f"{path.name} cannot be uploaded: {error}") from error


def join_key(*parts: str) -> str:
    """The parts as one prefix, with a `/` after each; empty parts and slashes at either end do not count."""
    return "".join(f"{clean}/" for part in parts if (clean := part.strip("/")))
