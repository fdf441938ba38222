"""The facts about a store's bucket that all its users need."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from cdk_triton.hosting._cdk.per_construct import cached_per_construct

__all__ = ["arn_of", "encryption_key_of"]


@cached_per_construct
def arn_of(bucket: s3.IBucket) -> str:
    """Its `bucket_arn`; that of an object is this, a slash, and the key."""
    return bucket.bucket_arn


@cached_per_construct
def encryption_key_of(bucket: s3.IBucket) -> kms.IKey | None:
    """Its `encryption_key`."""
    return bucket.encryption_key
