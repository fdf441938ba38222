"""Small helpers that the resource types share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError

__all__ = ["document", "has_to_exist", "missing_is_fine", "picked", "tag_map"]

_GONE = {
    "404",
    "NoSuchBucket",
    "NoSuchBucketPolicy",
    "NoSuchEntity",
    "NotFound",
    "NotFoundException",
    "ObjectNotFoundException",
    "ParameterNotFound",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
    "RepositoryNotFoundException",
    "ResourceNotFound",
    "ResourceNotFoundException",
    "StateMachineDoesNotExist",
}


@contextmanager
def missing_is_fine() -> Iterator[None]:
    """Ignore the error of a deletion if the resource does not exist (which SageMaker reports only in its message)."""
    try:
        yield
    except ClientError as error:
        if not _is_missing(error):
            raise


@contextmanager
def has_to_exist(otherwise: str) -> Iterator[None]:
    """Fail with the sentence `otherwise` if the resource to import does not exist."""
    try:
        yield
    except ClientError as error:
        if not _is_missing(error):
            raise
        raise LocalError(otherwise) from error


def _is_missing(error: ClientError) -> bool:
    details = error.response["Error"]
    # EC2 has a code for each kind of thing, such as InvalidVpcID.NotFound.
    gone = details["Code"] in _GONE or details["Code"].endswith(".NotFound")
    return gone or "Could not find" in details["Message"]


def picked(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the `names` that the properties have."""
    return {name: properties[name] for name in names if name in properties}


def document(policy: Any) -> str:
    """A policy document as text; templates write it as an object or as text."""
    return policy if isinstance(policy, str) else json.dumps(policy)


def tag_map(tags: list[dict[str, str]]) -> dict[str, str]:
    """Tags in the form of the services that take a map."""
    return {tag["Key"]: tag["Value"] for tag in tags}
