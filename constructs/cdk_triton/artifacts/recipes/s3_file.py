"""`S3File`: a file that a recipe reads from S3 instead of the repository."""

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
    """An object in S3, identified by its content.

    An artifact key contains the SHA-256 of the content, not the bucket or the object key, so moving the object causes
    no build.

    Attributes:
        bucket: the object's bucket, in the region of the store.
        key: the object's key.
        sha256: the SHA-256 of the content, 64 lower-case hexadecimal digits. The build rejects an object with a
            different SHA-256. A version id or an ETag would not identify the content.

    Raises:
        ConfigurationError: a value is not valid as a bucket name, object key or SHA-256, or contains a CDK token.
            Tokens have no value when the app writes the build plan.
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
                f"the sha256 of the S3File {quoted(self.key)} is {quoted(self.sha256)} but must be 64 hexadecimal "
                "digits in lower case: write the digits that sha256sum prints"
            )
