"""The prefixes of asynchronous endpoints that share a bucket: none can contain a prefix of another endpoint.

Permissions apply to prefixes. With a common prefix, the callers of one endpoint could read the other endpoint's
responses, and its instances could read the other endpoint's requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from cdk_triton._tokens import has_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of
from cdk_triton.hosting.naming.taken_names import is_in_its_tree

__all__ = ["check_free", "take"]


@cached_per_construct
def _taken(app: IConstruct) -> dict[str, list[tuple[IConstruct, str]]]:
    """The endpoints of an app with their prefixes, by bucket."""
    return {}


def check_free(scope: IConstruct, path: str, bucket: s3.IBucket, prefixes: Sequence[str]) -> None:
    """Reject prefixes that overlap with those of another endpoint of the app.

    Args:
        scope: the scope of the endpoint, which does not exist yet.
        path: the endpoint's path.
        bucket: the bucket that the endpoint was given.
        prefixes: the endpoint's prefixes, without a slash at the end.

    Raises:
        ConfigurationError: a prefix contains a prefix of another endpoint, or the other way round.
    """
    for other, taken in _taken(scope.node.root).get(_identity(bucket), ()):
        for prefix in prefixes:
            overlap = f"{prefix}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{prefix}/")
            if overlap and is_in_its_tree(other):
                raise ConfigurationError(
                    f"{path} has the prefix {quoted(prefix)} in the bucket {path_of(bucket)}, and {other.node.path} "
                    f"has {quoted(taken)} there, so the callers of one could read the answers of the other: give "
                    "each AsyncInference an input_prefix, output_prefix and failure_prefix of its own"
                )


def take(endpoint: IConstruct, bucket: s3.IBucket, prefixes: Sequence[str]) -> None:
    """Record that an endpoint has the prefixes."""
    taken = _taken(endpoint.node.root).setdefault(_identity(bucket), [])
    taken += [(endpoint, prefix) for prefix in prefixes]


def _identity(bucket: s3.IBucket) -> str:
    """The bucket's name if it is known, because a bucket may be imported twice."""
    return path_of(bucket) if has_token(bucket.bucket_name) else bucket.bucket_name
