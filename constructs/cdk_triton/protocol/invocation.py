"""The errors of Lambda after which a caller of a store's functions waits and calls again."""

from __future__ import annotations

from typing import Final

__all__ = ["CALL_AGAIN"]

CALL_AGAIN: Final = (
    "CodeArtifactUserDeletedException",
    "CodeArtifactUserPendingException",
    "EC2ThrottledException",
    "EC2UnexpectedException",
    "ENINotReadyException",
    "ResourceConflictException",
    "ResourceNotReadyException",
    "ServiceException",
    "TooManyRequestsException",
)
"""The errors of `Invoke` that pass without a change by anybody, as botocore's model describes them.

Lambda reclaims the resources of a function that nobody called for weeks. The first call fails and makes the function
`Pending` until it has them again ("Lambda function states",
https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html). AWS measured 40 to 106 seconds
(aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#801). The CDK's provider framework
waits for the same reason (aws/aws-cdk#20123).
"""
