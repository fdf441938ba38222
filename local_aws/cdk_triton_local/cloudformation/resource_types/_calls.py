"""Small helpers that the resource types share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["document", "missing_is_fine", "picked", "tag_map"]

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
        details = error.response["Error"]
        # EC2 has a code for each kind of thing, such as InvalidVpcID.NotFound.
        gone = details["Code"] in _GONE or details["Code"].endswith(".NotFound")
        if not gone and "Could not find" not in details["Message"]:
            raise


def picked(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the `names` that the properties have."""
    return {name: properties[name] for name in names if name in properties}


def document(policy: Any) -> str:
    """A policy document as text; templates write it as an object or as text."""
    return policy if isinstance(policy, str) else json.dumps(policy)


def tag_map(tags: list[dict[str, str]]) -> dict[str, str]:
    """Tags in the form of the services that take a map."""
    return {tag["Key"]: tag["Value"] for tag in tags}
