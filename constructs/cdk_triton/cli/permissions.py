"""The fixes of rejected calls, and the IAM permission that each operation needs.

Source: the tables of actions in AWS's Service Authorization Reference, at
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from __future__ import annotations

import re
from typing import Final

from botocore.exceptions import ClientError

__all__ = ["fix_of", "is_denied", "permission_of"]

_OPERATIONS: Final = {
    "cloudformation": (
        "DescribeStackResource DescribeStackResources DescribeStacks GetTemplate ListStackResources ListStacks"
    ),
    "cloudwatch": "GetMetricStatistics",
    "ecr": "BatchGetImage",
    "iam": "GetRole",
    "lambda": "GetFunctionConfiguration ListFunctions",
    "pricing": "GetProducts",
    "s3": "AbortMultipartUpload DeleteObject GetBucketVersioning GetObject PutObject",
    "sagemaker": (
        "DescribeEndpoint DescribeEndpointConfig DescribeInferenceComponent DescribeModel DescribeModelPackage "
        "InvokeEndpoint InvokeEndpointAsync InvokeEndpointWithResponseStream ListEndpointConfigs ListEndpoints "
        "ListInferenceComponents ListModels"
    ),
    "servicequotas": "ListAWSDefaultServiceQuotas ListServiceQuotas",
    "ssm": "GetParameter",
    "states": ("DescribeExecution DescribeMapRun DescribeStateMachine ListMapRuns StartExecution"),
    "sts": "AssumeRole GetCallerIdentity",
}
"""The operations that the commands call and whose action has the same name, by the prefix of the action."""

_ACTIONS: Final = {
    **{name: f"{prefix}:{name}" for prefix, names in _OPERATIONS.items() for name in names.split()},
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObjects": "s3:DeleteObject",
    "Invoke": "lambda:InvokeFunction",
    "ListObjectsV2": "s3:ListBucket",
    "UploadPart": "s3:PutObject",
}


_HEAD_OBJECT: Final = (
    "the permissions s3:GetObject and s3:ListBucket, because S3 answers 403 to a caller without s3:ListBucket also if "
    "the object does not exist"
)
"""HeadObject in the API of S3."""

_DENIED: Final = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"}
"""The codes for a missing permission. The answer to a HEAD request has no body, so its code is the status."""

_CLOCK: Final = {"RequestTimeTooSkewed", "RequestExpired"}

_CREDENTIALS: Final = {
    *("AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId"),
    *("InvalidClientTokenId", "InvalidSignatureException", "InvalidToken", "SignatureDoesNotMatch"),
    *("TokenRefreshRequired", "UnrecognizedClientException"),
}
"""The codes for unknown or expired credentials, of all protocols of AWS."""


def is_denied(error: ClientError) -> bool:
    """Whether AWS rejected the call because the caller lacks a permission."""
    return error.response.get("Error", {}).get("Code") in _DENIED


def fix_of(error: ClientError) -> str | None:
    """The fix of a rejected call; None if the cause is not the caller's permissions, credentials or clock.

    Args:
        error: the answer of AWS. Its HTTP status does not decide: services answer 400 or 403 to each of these faults.
    """
    code = error.response.get("Error", {}).get("Code")
    if is_denied(error):
        return f"get {permission_of(error)}"
    if code in _CLOCK:
        return "set the clock of this machine"
    if code in _CREDENTIALS:
        return "sign in (`aws sso login`, `aws configure`), or choose another profile with AWS_PROFILE"
    return None


def permission_of(error: ClientError) -> str:
    """The permission that a rejected call needs, from AWS's reason if that names it, or else from the operation.

    S3 also needs permissions for the key of a bucket, which only the reason contains.
    """
    reason = str(error.response.get("Error", {}).get("Message", ""))
    named = re.search(r"not authorized to perform:? ([a-z0-9-]+:[A-Za-z]+)", reason)
    if named is not None:
        return f"the permission {named[1]}"
    if error.operation_name == "HeadObject":
        return _HEAD_OBJECT
    action = _ACTIONS.get(error.operation_name)
    return f"the permission for {error.operation_name}" if action is None else f"the permission {action}"
