"""A file that is in S3 already."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdk_triton._wording import quoted
from cdk_triton.artifacts.recipes.values import literal
from cdk_triton.errors import ConfigurationError

__all__ = ["S3File"]

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
_LONGEST_KEY = 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class S3File:
    """An object in S3, by content.

    The place of the object is not part of any artifact key, but its content is. So a copy in another bucket causes no
    build.

    Attributes:
        bucket: its bucket, in the region of the store.
        key: its object key.
        sha256: the SHA-256 of its content, 64 hexadecimal digits. A version id or an ETag would not fix the content;
            the build rejects an object that has another one.

    Raises:
        ConfigurationError: a value is not a bucket, key or SHA-256, or contains a CDK token: the plan of a build is
            written while the app runs.
    """

    bucket: str
    key: str
    sha256: str

    def __post_init__(self) -> None:
        """Check the values."""
        literal(self.bucket, "the bucket of an S3File")
        literal(self.key, "the key of an S3File")
        literal(self.sha256, "the sha256 of an S3File")
        if _BUCKET.fullmatch(self.bucket) is None:
            raise ConfigurationError(
                f"the bucket of an S3File is {quoted(self.bucket)}, which is not the name of a bucket: write 3 to 63 "
                "lower-case letters, digits, '.' and '-', without s3:// and without a path"
            )
        if not self.key or len(self.key.encode()) > _LONGEST_KEY or self.key.startswith("s3://"):
            raise ConfigurationError(
                f"the key of an S3File is {quoted(self.key)}, which is not an object key: write 1 to {_LONGEST_KEY} "
                "bytes without s3:// and the bucket, such as 'models/bert.onnx'"
            )
        if _SHA256.fullmatch(self.sha256) is None:
            raise ConfigurationError(
                f"the sha256 of the S3File {quoted(self.key)} is {quoted(self.sha256)} and must be 64 hexadecimal "
                "digits in lower case: sha256sum prints them"
            )
