"""Who may invoke an endpoint, whether it is made here or imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aws_cdk import aws_iam as iam

from cdk_triton.artifacts.layout import target_model_pattern
from cdk_triton.errors import ConfigurationError

__all__ = ["allow_invocation"]


def allow_invocation(
    grantee: iam.IGrantable, endpoint_arn: str, ensembles: Sequence[str] | None, check: Callable[[str], object]
) -> iam.Grant:
    """Allow a principal to invoke an endpoint.

    Args:
        grantee: the principal.
        endpoint_arn: the endpoint's ARN.
        ensembles: those that it may name, in every version; None: all, and endpoints that serve one model only.
        check: refuses an ensemble that the endpoint cannot have.

    Raises:
        ConfigurationError: there is none, a name instead of a list, or one that the check refuses.
    """
    conditions = None
    if ensembles is not None:
        if not ensembles:
            raise ConfigurationError("target_models is empty: name an ensemble, or leave it out to allow all")
        for name in ensembles:
            check(name)
        # The condition key of InvokeEndpoint ("Actions, resources, and condition keys for Amazon SageMaker").
        conditions = {"StringLike": {"sagemaker:TargetModel": [target_model_pattern(name) for name in ensembles]}}
    return iam.Grant.add_to_principal(
        grantee=grantee, actions=["sagemaker:InvokeEndpoint"], resource_arns=[endpoint_arn], conditions=conditions
    )
