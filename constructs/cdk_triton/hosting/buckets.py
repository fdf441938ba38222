"""What a store's bucket says of itself, asked once for all that uses it: each of its properties is a call of jsii."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from cdk_triton.hosting.identity import identity

__all__ = ["arn_of", "key_of"]

_ARNS: dict[str, str] = {}
_KEYS: dict[str, kms.IKey | None] = {}
"""By the identity of the bucket."""


def arn_of(bucket: s3.IBucket) -> str:
    """Its `bucket_arn`; that of an object is this, a slash, and the key."""
    known = identity(bucket)
    if known not in _ARNS:
        _ARNS[known] = bucket.bucket_arn
    return _ARNS[known]


def key_of(bucket: s3.IBucket) -> kms.IKey | None:
    """Its `encryption_key`."""
    known = identity(bucket)
    if known not in _KEYS:
        _KEYS[known] = bucket.encryption_key
    return _KEYS[known]
