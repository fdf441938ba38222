"""Caches results for each construct, because reading them from the CDK takes calls to Node."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from cdk_triton._jsii import identity

__all__ = ["arn_of", "cached_per_construct", "encryption_key_of", "path_of"]

ConstructT = TypeVar("ConstructT", bound=IConstruct)
AnswerT = TypeVar("AnswerT")


def cached_per_construct(compute: Callable[[ConstructT], AnswerT]) -> Callable[[ConstructT], AnswerT]:
    """Call a function once for each construct, and return the same result afterwards.

    The result must be constant, or a mutable object that collects facts about the construct. For a user's class that
    implements an interface, the function is called each time until jsii knows the object.
    """
    answers: dict[str, AnswerT] = {}

    @wraps(compute)
    def cached(construct: ConstructT) -> AnswerT:
        key = identity(construct)
        if key is None:
            return compute(construct)
        if key not in answers:
            answers[key] = compute(construct)
        return answers[key]

    return cached


@cached_per_construct
def path_of(construct: IConstruct) -> str:
    """`node.path`."""
    return construct.node.path


@cached_per_construct
def arn_of(bucket: s3.IBucket) -> str:
    """The ARN of the bucket, which the CDK computes once."""
    return bucket.bucket_arn


@cached_per_construct
def encryption_key_of(bucket: s3.IBucket) -> kms.IKey | None:
    """The key of the bucket, which the CDK computes once; None for S3's own keys."""
    return bucket.encryption_key
