"""The interface of builders, and the common part of its implementations.

A builder is a value: the service, the machine, the time limit. The artifact store creates the builder's resources,
because a build can outlive the stack that started it. In every service, a job runs in the image that serves, reads one
folder of the store's bucket and writes another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.network import Network
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.naming.per_construct import arn_of, encryption_key_of, path_of
from cdk_triton.hosting.naming.service_names import role_description
from cdk_triton.protocol import layout
from cdk_triton.sagemaker import ServingPlatform

__all__ = [
    "BuildService",
    "Builder",
    "build_role",
    "key_statement",
    "minutes",
    "staging_statements",
]

DEFAULT_TIMEOUT_MINUTES = 2 * 60
MIN_TIMEOUT_MINUTES = 10
MAX_TIMEOUT_MINUTES = 36 * 60
"""CodeBuild takes 5 minutes to 36 hours (BuildTimeOut in botocore's model). The last 5 minutes are kept for the upload
of finished files. The objects of a job expire after 7 days, so the same bounds hold for Processing."""


class BuildService(NamedTuple):
    """The resources of a builder in the store.

    Attributes:
        settings: the values that the handler needs to start a job; contains tokens.
        role: the role of the job.
        handler_statements: the permissions that the store's handler needs to start and watch jobs.
        handler_reasons: the reason for each ARN with a wildcard in `handler_statements`.
        network: the network of the jobs; None outside a VPC of the user.
    """

    settings: Mapping[str, object]
    role: iam.Role
    handler_statements: Sequence[Statement]
    handler_reasons: Mapping[str, str] = MappingProxyType({})
    network: Network | None = None


class Builder(Protocol):
    """Runs builds for the platforms whose GPU it has: `CodeBuildGpuBuilder` or `SageMakerProcessingBuilder`.

    Its members are private, because the store's handler can start the jobs of these two services only.
    """

    @property
    def _kind(self) -> Literal["codebuild", "processing"]:
        """The name of the service in build plans and in the handler."""

    @property
    def _timeout_minutes(self) -> int:
        """When the service ends a job. The build program ends itself 5 minutes earlier."""

    def _unsupported_reason(self, platform: ServingPlatform, region: str | None) -> str | None:
        """Why it cannot build for a platform; None if it can. A region of None is an unresolved token."""

    def _gpu_count(self, platform: ServingPlatform) -> int | None:
        """How many GPUs the machine of a job has; None if the library does not know it."""

    def _machine(self, platform: ServingPlatform) -> tuple[str | None, int | None]:
        """The instance type and the volume in GB of a job; None where the service offers no choice."""

    def _provide(self, scope: Construct, bucket: s3.IBucket) -> BuildService:
        """Create the resources of its jobs below `scope`, for a store with this bucket."""


def minutes(
    value: Duration | None,
    what: str,
    *,
    default: int = DEFAULT_TIMEOUT_MINUTES,
    least: int = MIN_TIMEOUT_MINUTES,
    most: int = MAX_TIMEOUT_MINUTES,
) -> int:
    """A duration in whole minutes, or the default, which is a number because a Duration takes jsii calls.

    Raises:
        ConfigurationError: the timeout is a token, has a fraction of a minute, or is out of bounds.
    """
    if value is None:
        return default
    seconds = _seconds(value)
    if seconds is None:
        raise ConfigurationError(
            f"{what} is a CDK token, but build plans contain the number: write the duration itself"
        )
    if seconds % 60 or not least <= seconds / 60 <= most:
        raise ConfigurationError(f"{what} is {value.to_human_string()}: use whole minutes, from {least} to {most}")
    return int(seconds // 60)


@cache  # the timeouts are checked first and read later
def _seconds(duration: Duration) -> float | None:
    return None if duration.is_unresolved() else duration.to_seconds(integral=False)


def build_role(
    scope: Construct, principal: iam.IPrincipal, statements: Iterable[Statement], reasons: Mapping[str, str]
) -> iam.Role:
    """The role of a builder's jobs.

    Args:
        scope: the builder's construct.
        principal: the service that assumes the role.
        statements: the permissions of a job, in addition to a token to pull an image of Amazon ECR.
        reasons: the reason for each ARN with a wildcard in them.
    """
    role = iam.Role(
        scope,
        "Role",
        assumed_by=principal,
        description=role_description(f"cdk-triton: what the builds of {path_of(scope)} may do"),
    )
    allow(role, Statement(actions=["ecr:GetAuthorizationToken"], resources=["*"]), *statements)
    reason = (
        "ecr:GetAuthorizationToken, cloudwatch:PutMetricData and the ec2:Describe actions do not support "
        "resource-level permissions."
    )
    acknowledge_wildcards(role, {"*": reason, **reasons})
    return role


def key_statement(key: kms.IKey) -> Statement:
    """Permission to encrypt and decrypt with a key. A multipart upload needs both."""
    return Statement(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key.key_arn])


def staging_statements(
    bucket: s3.IBucket, *, read: Sequence[str], of_bucket: Sequence[str] = ()
) -> tuple[list[Statement], dict[str, str]]:
    """Permission to read the staged inputs of builds and to write their outputs, and nothing else of the store.

    Args:
        bucket: the store's bucket.
        read: the actions that the service needs to read an object.
        of_bucket: the actions that it needs on the bucket itself.

    Returns:
        The statements for the role of a job, and the reason for each ARN with a wildcard.
    """
    bucket_arn = arn_of(bucket)
    read_from, written_to = layout.build_inputs_prefix("*"), layout.build_outputs_prefix("*")
    inputs, outputs = f"{bucket_arn}/{read_from}*", f"{bucket_arn}/{written_to}*"
    statements = [
        Statement(actions=list(read), resources=[inputs]),
        Statement(actions=["s3:AbortMultipartUpload", "s3:PutObject"], resources=[outputs]),
        Statement(
            actions=["s3:ListBucket"],
            resources=[bucket_arn],
            # Processing lists `…/in`, CodeBuild `…/in/`.
            conditions={"StringLike": {"s3:prefix": f"{read_from.removesuffix('/')}*"}},
        ),
    ]
    if of_bucket:
        statements.append(Statement(actions=list(of_bucket), resources=[bucket_arn]))
    if (key := encryption_key_of(bucket)) is not None:
        statements.append(key_statement(key))
    reason = "A build gets its id when it starts, so the name of its folder is not known at synth."
    return statements, dict.fromkeys((inputs, outputs), reason)
