"""Corrects the roles of moto 5.2.5; a test fails when moto no longer needs a correction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdk_triton_local.moto_state.patching import replace_method

__all__ = ["correct_roles", "make_scaling_role", "role_statements"]

_SCALING = "sagemaker.application-autoscaling.amazonaws.com"
_SCALING_ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"


def correct_roles() -> None:
    """Correct a service-linked role's name, and how roles are listed; a second call changes nothing."""
    from moto.iam.models import IAMBackend

    replace_method(IAMBackend, "create_service_linked_role", _named)
    replace_method(IAMBackend, "get_roles", lambda original: lambda backend: list(original(backend)))


def make_scaling_role(account: str, region: str) -> str:
    """Make the role that an account gets with its first endpoint variant as a scalable target; return its ARN.

    Source: Application Auto Scaling user guide, "Amazon SageMaker AI and Application Auto Scaling": "automatically
    created in your AWS account when registering SageMaker AI resources as scalable targets".
    """
    from moto.iam.models import iam_backends
    from moto.utilities.utils import get_partition

    backend = iam_backends[account][get_partition(region)]
    role = next((role for role in backend.roles.values() if role.name == _SCALING_ROLE), None)
    if role is None:
        role = backend.create_service_linked_role(_SCALING, "", "")
    arn: str = role.arn
    return arn


def role_statements(account: str, region: str, arn: str) -> list[Mapping[str, Any]]:
    """The statements of a role's own policies and of its managed policies; none of a role that does not exist."""
    from moto.iam.exceptions import NotFoundException
    from moto.iam.models import iam_backends
    from moto.utilities.utils import get_partition

    try:
        role = iam_backends[account][get_partition(region)].get_role_by_arn(arn)
    except NotFoundException:
        return []
    managed = [
        version.document
        for policy in role.managed_policies.values()
        for version in policy.versions
        if version.version_id == policy.default_version_id
    ]
    found = (json.loads(each)["Statement"] for each in (*role.policies.values(), *managed))
    return [one for each in found for one in (each if isinstance(each, list) else [each])]


def _named(original: Any) -> Any:
    def create_service_linked_role(backend: Any, service_name: str, description: str, suffix: str) -> Any:
        """CreateServiceLinkedRole: moto derives names from the service's, and this one cannot be derived."""
        if service_name != _SCALING:
            return original(backend, service_name, description, suffix)
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": _SCALING}}
        return backend.create_role(
            _SCALING_ROLE,
            json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
            f"/aws-service-role/{_SCALING}/",
            permissions_boundary=None,
            description=description,
            tags=[],
            max_session_duration="3600",
            linked_service=_SCALING,
        )

    return create_service_linked_role
