"""Requests that get no answer, because no way leads to their service."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from cdk_triton_local.front.connection import MAILBOX

__all__ = ["unanswered"]

_INVOCATION: Final = r"POST /endpoints/[^/ ]+/(?:async-)?invocations"
_SIGNED: Final = {"ecr.api": "ecr", "sagemaker.api": "sagemaker"}
"""The name with which requests are signed, where that of the VPC endpoint is another one."""


def unanswered(services: Collection[str] | None) -> str:
    """A regular expression that matches the beginning of each request that none of some services answers.

    Responses of custom resources go to a bucket of CloudFormation, so they are requests to S3 ("Setting up VPC
    endpoints for AWS CloudFormation").

    Args:
        services: as in the names of VPC endpoints; None for all services.

    Returns:
        The expression; an empty text if all services answer.
    """
    if services is None:
        return ""
    signed = "|".join(sorted(re.escape(_SIGNED.get(each, each)) for each in services))
    others = [rf"(?!{_INVOCATION}).*? Credential=(?:[^/]+/){{3}}(?!(?:{signed})/)[^/]+/aws4_request"]
    others += [rf"[A-Z]+ [^ ]*[?&]X-Amz-Credential=(?:[^&% ]+%2F){{3}}(?!(?:{signed})%2F)[^&% ]+%2Faws4_request"]
    others += [] if "s3" in services else [rf"PUT {MAILBOX}"]
    others += [] if "sagemaker.runtime" in services else [_INVOCATION]
    return f"(?s:{'|'.join(others)})"
