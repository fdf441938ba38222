"""What the CDK's function for `auto_delete_objects` of a bucket does.

That function is Node.js code, which does not run here, as its SDK is part of Lambda. The rules are those of
`auto-delete-objects-handler/index.ts` in aws-cdk-lib 2.275: a creation does nothing, an update has the bucket's name as
physical id, and a deletion empties a bucket that still has the tag. The policy that denies new objects meanwhile is
omitted, because the local AWS enforces no policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine
from cdk_triton_local.cloudformation.resource_types.base import Context

__all__ = ["TYPE_NAME", "answer"]

TYPE_NAME: Final = "Custom::S3AutoDeleteObjects"

_TAG: Final = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


def answer(context: Context, request: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """The response to a request of CloudFormation.

    Args:
        context: the resource.
        request: the request.
        role: the role of the function.
    """
    bucket = request["ResourceProperties"].get("BucketName")
    identifier = request.get("PhysicalResourceId", request["RequestId"])
    if request["RequestType"] == "Update":
        identifier = bucket or request["OldResourceProperties"].get("BucketName")
    if request["RequestType"] == "Delete":
        with missing_is_fine():
            _empty(context.services.client("s3", role), bucket)
    return {**request, "Status": "SUCCESS", "PhysicalResourceId": identifier}


def _empty(s3: Any, bucket: str) -> None:
    if _TAG not in _tags(s3, bucket):
        return
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
        if objects:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})


def _tags(s3: Any, bucket: str) -> list[dict[str, str]]:
    try:
        tags: list[dict[str, str]] = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:  # AWS has tags of CloudFormation on every bucket that it has made
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return []
    return tags
