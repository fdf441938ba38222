"""Which services can assume the library's roles, and on whose behalf.

If a service does not meet the condition of a role, every deployment fails. So a role has a condition only if AWS
documents that the service sends the condition key:

* SageMaker: "Cross-service confused deputy prevention", with the ARNs of real-time inference and of Processing jobs
  (https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html).
* CodeBuild: "Allow CodeBuild to interact with other AWS services", with `aws:SourceAccount`
  (https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-service-role.html).
* Step Functions: "Prevent cross-service confused deputy issue", with `aws:SourceAccount`
  (https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from cdk_triton.hosting.naming.findings import report_late_error
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = [
    "codebuild_of_the_account",
    "require_trust_in_sagemaker",
    "sagemaker_inference",
    "sagemaker_processing",
    "states_of_the_account",
]

SAGEMAKER: Final = "sagemaker.amazonaws.com"

TRUST_ERROR: Final = "cdk-triton:RoleNotTrusted"


def require_trust_in_sagemaker(scope: IConstruct, role: iam.IRole) -> None:
    """Let the app have an error if SageMaker is not allowed to assume a role of this app.

    SageMaker assumes the execution role of a model as `sagemaker.amazonaws.com` ("How to use SageMaker AI execution
    roles" in its developer guide). The trust policy is read at the end, because the app may still add to it. The trust
    policy of an imported role cannot be read.

    Args:
        scope: the model.
        role: the model's execution role.
    """
    if not isinstance(role, iam.Role) or role.assume_role_policy is None:
        return
    policy = role.assume_role_policy

    def is_trusted() -> bool:
        document = stack_of(role).resolve(policy) or {}
        return any(map(_trusts_sagemaker, document.get("Statement", ())))

    report_late_error(
        scope,
        TRUST_ERROR,
        f"SageMaker is not allowed to assume the role {path_of(role)} of {path_of(scope)}: its trust policy does not "
        f"allow {SAGEMAKER} sts:AssumeRole; add iam.ServicePrincipal('{SAGEMAKER}') to assumed_by, if need be in an "
        "iam.CompositePrincipal, or omit role=",
        is_trusted,
    )


def _trusts_sagemaker(statement: Mapping[str, Any]) -> bool:
    """Whether a statement may let SageMaker assume the role; a value that synth does not know counts as a match."""
    if statement.get("Effect") != "Allow":
        return False
    if "NotPrincipal" in statement or "NotAction" in statement:
        return True
    principal = statement.get("Principal", {})
    services = principal.get("Service", []) if isinstance(principal, Mapping) else principal
    return _matches(statement.get("Action", []), "sts:AssumeRole") and _matches(services, SAGEMAKER)


def _matches(patterns: Any, wanted: str) -> bool:
    """Whether a pattern, or one of several, matches a text; `*` and `?` are wildcards."""
    several = patterns if isinstance(patterns, list) else [patterns]
    return any(not isinstance(each, str) or fnmatchcase(wanted.lower(), each.lower()) for each in several)


def sagemaker_inference(scope: IConstruct) -> iam.IPrincipal:
    """SageMaker for models and endpoints: any SageMaker ARN, because "the ARN must be in the format provided"."""
    arn = stack_of(scope).format_arn(service="sagemaker", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME)
    return _sagemaker(arn)


def sagemaker_processing(scope: IConstruct) -> iam.IPrincipal:
    """SageMaker for Processing jobs."""
    return _sagemaker(stack_of(scope).format_arn(service="sagemaker", resource="processing-job", resource_name="*"))


def codebuild_of_the_account(scope: IConstruct) -> iam.IPrincipal:
    """CodeBuild for projects of the stack's account: the role is created first, so it cannot name a project."""
    return _of_the_account(scope, "codebuild.amazonaws.com")


def states_of_the_account(scope: IConstruct) -> iam.IPrincipal:
    """Step Functions for state machines of the stack's account."""
    return _of_the_account(scope, "states.amazonaws.com")


def _of_the_account(scope: IConstruct, service: str) -> iam.IPrincipal:
    account = {"StringEquals": {"aws:SourceAccount": stack_of(scope).account}}
    return iam.ServicePrincipal(service, conditions=account)


def _sagemaker(source_arn: str) -> iam.IPrincipal:
    return iam.ServicePrincipal("sagemaker.amazonaws.com", conditions={"ArnLike": {"aws:SourceArn": source_arn}})
