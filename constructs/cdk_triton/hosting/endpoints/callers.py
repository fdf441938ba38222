"""The permissions that a caller of an endpoint of this app needs: to invoke it, and to read its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Resource
from aws_cdk import aws_iam as iam

from cdk_triton.hosting.endpoints.asynchronous.grants import allow_async_invocation
from cdk_triton.hosting.endpoints.asynchronous.storage import AsyncStorage
from cdk_triton.hosting.endpoints.invoke_grants import allow_invocation, check_takes_published, ensemble_check
from cdk_triton.hosting.endpoints.parameters import allow_reading
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant

__all__ = ["allow_caller"]


def allow_caller(
    endpoint: Resource,
    grantee: iam.IGrantable,
    endpoint_arn: str,
    *,
    variants: Sequence[TritonVariant],
    storage: AsyncStorage | None,
    parameter_path: str | None,
    target_models: Sequence[str] | None,
    published: Sequence[str] | None,
) -> iam.Grant:
    """Allow a principal to invoke an endpoint and to read its parameters.

    Args:
        endpoint: the endpoint.
        grantee: the principal.
        endpoint_arn: the endpoint's ARN.
        variants: the endpoint's production variants.
        storage: the bucket of an asynchronous endpoint.
        parameter_path: the beginning of the names of the endpoint's parameters.
        target_models: the stack-deployed ensembles that the principal can call.
        published: patterns of the published ensembles that the principal can call.

    Raises:
        ConfigurationError: a list is empty, or no variant serves such an ensemble.
    """
    if published is not None:
        check_takes_published(endpoint, variants)
    if storage is not None and target_models is None:
        grant = allow_async_invocation(endpoint, grantee, endpoint_arn, storage)
    else:
        check = ensemble_check(endpoint, variants)
        can_stream = not any(variant.model.is_multi_model for variant in variants)
        grant = allow_invocation(
            endpoint, grantee, endpoint_arn, target_models, check, published, can_stream=can_stream
        )
    if parameter_path is None:
        return grant
    ensembles = target_models if published is None else target_models or ()
    return grant.combine(allow_reading(endpoint, grantee, parameter_path, variants, ensembles))
