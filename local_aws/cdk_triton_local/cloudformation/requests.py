"""What requests that create and change stacks contain beside the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.stacks import Settings
from cdk_triton_local.cloudformation.template import Template
from cdk_triton_local.wire import QueryApiError

__all__ = ["Request", "check_capabilities", "reject_unmodelled", "settings_of"]

Request = Mapping[str, Any]

_IAM_TYPES = {"AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::Role"}
_NAME_PROPERTIES = {"ManagedPolicyName", "RoleName"}


def reject_unmodelled(request: Request) -> None:
    """Reject an option whose effect is not modelled.

    Raises:
        TemplateError: the request has one.
    """
    unmodelled = {
        "DisableRollback": request.get("DisableRollback"),
        "OnFailure": request.get("OnFailure") not in (None, "ROLLBACK"),
        "OnStackFailure": request.get("OnStackFailure") not in (None, "ROLLBACK"),
        "RetainExceptOnCreate": request.get("RetainExceptOnCreate"),
        "StackPolicyBody": request.get("StackPolicyBody"),
        "DeploymentMode": request.get("DeploymentMode"),
        "RollbackConfiguration": (request.get("RollbackConfiguration") or {}).get("RollbackTriggers"),
        "DeploymentConfig.Mode": (request.get("DeploymentConfig") or {}).get("Mode") not in (None, "STANDARD"),
    }
    for name, present in unmodelled.items():
        if present:
            raise TemplateError(f"{name} is not modelled by the local CloudFormation; remove it")


def settings_of(request: Request) -> Settings:
    """The settings of a stack that a request has beside its template."""
    return Settings(
        capabilities=tuple(request.get("Capabilities", [])),
        role_arn=request.get("RoleARN"),
        notification_arns=tuple(request.get("NotificationARNs", [])),
    )


def check_capabilities(template: Template, capabilities: list[str]) -> None:
    """Reject a template with IAM resources without the caller's consent (API CreateStack, `Capabilities`).

    Raises:
        QueryApiError: the consent is missing.
    """
    iam = [each for each in template.resources.values() if each.type in _IAM_TYPES]
    named = any(_NAME_PROPERTIES & set(each.properties) for each in iam)
    if iam and "CAPABILITY_NAMED_IAM" not in capabilities and (named or "CAPABILITY_IAM" not in capabilities):
        needed = "CAPABILITY_NAMED_IAM" if named else "CAPABILITY_IAM"
        raise QueryApiError("InsufficientCapabilitiesException", f"Requires capabilities : [{needed}]")
