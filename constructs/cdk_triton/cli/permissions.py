"""The IAM permission that an operation needs, for messages about a rejected call.

Source: the tables of actions in AWS's Service Authorization Reference, at
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from __future__ import annotations

import re
from typing import Final

from botocore.exceptions import ClientError

__all__ = ["permission_of"]

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
        "InvokeEndpoint InvokeEndpointAsync ListEndpointConfigs ListEndpoints ListInferenceComponents ListModels"
    ),
    "servicequotas": "ListAWSDefaultServiceQuotas ListServiceQuotas",
    "ssm": "GetParameter",
    "states": ("DescribeExecution DescribeMapRun DescribeStateMachine ListMapRuns StartExecution StopExecution"),
    "sts": "AssumeRole GetCallerIdentity",
}
"""The operations that the commands call and whose action has the same name, by the prefix of the action."""

_ACTIONS: Final = {
    **{name: f"{prefix}:{name}" for prefix, names in _OPERATIONS.items() for name in names.split()},
    "CompleteMultipartUpload": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "DeleteObjects": "s3:DeleteObject",
    "HeadObject": "s3:GetObject",
    "Invoke": "lambda:InvokeFunction",
    "ListObjectsV2": "s3:ListBucket",
    "UploadPart": "s3:PutObject",
}


def permission_of(error: ClientError) -> str:
    """The permission that a rejected call needs: AWS's reason names it in most cases, and the operation in the others.

    S3 also needs permissions for the key of a bucket, which only the reason contains.
    """
    reason = str(error.response.get("Error", {}).get("Message", ""))
    named = re.search(r"not authorized to perform:? ([a-z0-9-]+:[A-Za-z]+)", reason)
    if named is not None:
        return f"the permission {named[1]}"
    action = _ACTIONS.get(error.operation_name)
    return f"the permission for {error.operation_name}" if action is None else f"the permission {action}"
