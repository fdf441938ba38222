"""The templates of deployed stacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from cdk_triton.cli.doctor.account import Account

__all__ = ["deployed_template", "is_deployed"]

_WITHOUT_RESOURCES = ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE")


def is_deployed(account: Account, stack: str) -> bool:
    """Whether there is a stack of that name with resources.

    Raises:
        ClientError: CloudFormation rejects the call.
    """
    try:
        found = account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if _is_missing(error):
            return False
        raise
    return any(each["StackStatus"] not in _WITHOUT_RESOURCES for each in found)


def deployed_template(account: Account, stack: str) -> Mapping[str, Any] | None:
    """The template of a stack; None if there is no such stack, or if the CDK did not write its template.

    Raises:
        ClientError: CloudFormation rejects the call.
    """
    try:
        body = account.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    except ClientError as error:
        if _is_missing(error):
            return None
        raise
    try:
        template: Mapping[str, Any] = json.loads(body) if isinstance(body, str) else body
    except ValueError:  # YAML: not a template of the CDK
        return None
    return template


def _is_missing(error: ClientError) -> bool:
    """CloudFormation has no error code for this: "Stack with id X does not exist"."""
    return "does not exist" in str(error)
