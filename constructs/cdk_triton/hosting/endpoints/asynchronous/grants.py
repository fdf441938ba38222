"""The permissions of callers of an asynchronous endpoint."""

from __future__ import annotations

from aws_cdk import Resource
from aws_cdk import aws_iam as iam

from cdk_triton.hosting.access.keys import use_of_key
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.endpoints.asynchronous.storage import USE_OF_KEY, AsyncStorage
from cdk_triton.hosting.endpoints.invoke_grants import warn_without_effect

__all__ = ["allow_async_invocation"]


def allow_async_invocation(
    endpoint: Resource, grantee: iam.IGrantable, endpoint_arn: str, storage: AsyncStorage
) -> iam.Grant:
    """Allow a principal to send requests and to read responses, or warn that the grant allows nothing.

    The permissions do not include InvokeEndpoint, because an asynchronous endpoint does not accept it. If an object
    does not exist, S3 responds with 403 instead of 404, unless the caller is allowed to list the bucket (GetObject in
    the API of S3). So callers can list the objects below the prefixes of responses and error messages.

    Args:
        endpoint: the endpoint.
        grantee: the principal.
        endpoint_arn: the endpoint's ARN.
        storage: the endpoint's bucket and prefixes.
    """
    statements = [
        Statement(actions=["sagemaker:InvokeEndpointAsync"], resources=[endpoint_arn]),
        Statement(actions=["s3:AbortMultipartUpload", "s3:PutObject"], resources=storage.objects(storage.prefixes[:1])),
        Statement(actions=["s3:GetObject"], resources=storage.objects(storage.written)),
        storage.listing(storage.written),
        *(use_of_key(endpoint, key, USE_OF_KEY) for key in storage.keys),
    ]
    grants = [_grant(grantee, statement) for statement in statements]
    warn_without_effect(endpoint, grantee.grant_principal, grants[0])
    result = grants[0]
    for grant in grants[1:]:
        result = result.combine(grant)
    return result


def _grant(grantee: iam.IGrantable, statement: Statement) -> iam.Grant:
    conditions = {operator: dict(keys) for operator, keys in statement.conditions.items()}
    return iam.Grant.add_to_principal(
        grantee=grantee,
        actions=list(statement.actions),
        resource_arns=list(statement.resources),
        conditions=conditions or None,
    )
