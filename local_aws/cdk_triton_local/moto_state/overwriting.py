"""What moto overwrites or copies although a request or a service forbids it: parts of changed objects, tags."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from cdk_triton_local.moto_state.patching import replace_method

__all__ = ["correct_overwriting"]


def correct_overwriting() -> None:
    """Make moto compare the source of a part with the expected ETag, and replace a tag whose key a resource has.

    Raises:
        LocalError: moto does not have a method that is replaced.
    """
    from moto.s3.responses import S3Response
    from moto.sagemaker.models import SageMakerModelBackend

    replace_method(S3Response, "upload_part_copy", _unchanged_source)
    replace_method(SageMakerModelBackend, "add_tags", _replaced_tags)


def _unchanged_source(original: Any) -> Any:
    def upload_part_copy(request: Any) -> Any:
        """UploadPartCopy with `CopySourceIfMatch`."""
        from moto.s3.exceptions import PreconditionFailed

        expected = request.headers.get("x-amz-copy-source-if-match")
        if expected is not None:
            place = urlparse(request.headers["x-amz-copy-source"])
            bucket, key = unquote(place.path).lstrip("/").split("/", 1)
            version = parse_qs(place.query).get("versionId", [None])[0]
            source = request.backend.get_object(bucket, key, version_id=version)
            if source is not None and source.etag.strip('"') != expected.strip('"'):
                raise PreconditionFailed(failed_condition="x-amz-copy-source-If-Match")
        return original(request)

    return upload_part_copy


def _replaced_tags(original: Any) -> Any:
    def add_tags(backend: Any, arn: str, tags: list[dict[str, str]]) -> Any:
        """AddTags "adds or overwrites" tags, because "tag keys must be unique per resource" (SageMaker's API)."""
        backend.delete_tags(arn, [tag["Key"] for tag in tags])
        return original(backend, arn, tags)

    return add_tags
