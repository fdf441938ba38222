"""Prefixes of object keys below which the roles of models can write."""

from __future__ import annotations

import re

from aws_cdk import aws_s3 as s3

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.store.store import TritonArtifactStore
from cdk_triton.protocol.layout import SERVED_PREFIXES, STAGING_PREFIX

__all__ = ["check_prefix"]

_OF_THE_STORE = (*SERVED_PREFIXES, STAGING_PREFIX)

_PREFIX = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_MAX_LENGTH = 400  # a DestinationS3Uri has 512 characters, of which a bucket takes up to 69


def check_prefix(what: str, prefix: str, bucket: s3.IBucket | None) -> None:
    """Reject a prefix that SageMaker would reject, or that belongs to an artifact store.

    Args:
        what: the argument, as a sentence begins: "prefix of a DataCapture".
        prefix: the prefix, without a slash at its end.
        bucket: the bucket; None: one that the endpoint creates.

    Raises:
        ConfigurationError: the prefix contains a character that is not allowed, or a relative part, which S3 rejects
            or many tools resolve ("Naming Amazon S3 objects" in S3's user guide); is too long, or is one of the store's
            own.
    """
    if not _PREFIX.fullmatch(prefix) or len(prefix) > _MAX_LENGTH or not {".", ".."}.isdisjoint(prefix.split("/")):
        raise ConfigurationError(
            f"{what} is {quoted(prefix)}: use up to {_MAX_LENGTH} letters, digits, '.', '_' and '-', with '/' only "
            "between them, and no part that is '.' or '..'"
        )
    store = None if bucket is None else bucket.node.scope
    if isinstance(store, TritonArtifactStore) and f"{prefix}/".startswith(_OF_THE_STORE):
        raise ConfigurationError(
            f"{what} is {quoted(prefix)} in the bucket of the artifact store {store.node.path}, so models could "
            "write among the archives: use another prefix, or preferably another bucket"
        )
