"""The permissions that the archives of one model need beyond those of the store, in policies of the model's stack.

They are inline policies of roles in the store's stack, which is deployed before this model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import Annotations, Aws
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.artifacts import S3File
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.images import PULL_ACTIONS, ContainerImage
from cdk_triton.hosting.naming.acknowledgements import acknowledge_nist
from cdk_triton.hosting.naming.service_names import unique_name

__all__ = ["GRANT_IDS", "allow_inputs", "allow_pull", "inline_grant", "object_arn"]

PULL_WARNING = "cdk-triton:BuildImagePullNotGranted"

_IMAGE_PULL, _INPUTS = "BuildImagePull", "BuildInputs"

GRANT_IDS = (_IMAGE_PULL, _INPUTS)
"""The construct ids, below a model, of the policies that its archives depend on: a contract."""


def allow_pull(scope: Construct, image: ContainerImage, role: iam.IRole) -> None:
    """Let a builder's jobs pull a model's image, or warn that its repository is not known."""
    if image.repository_arn is None:
        Annotations.of(scope).add_warning_v2(
            PULL_WARNING,
            f"the image {image.uri} does not name a repository of Amazon ECR, so the role of the builds got no "
            "permission to pull the image: call grant_pull on the image's repository for each role in "
            "store.build_roles.values(), then acknowledge this",
        )
    else:
        inline_grant(scope, _IMAGE_PULL, role, PULL_ACTIONS, [image.repository_arn])


def allow_inputs(scope: Construct, files: Iterable[S3File], role: iam.IRole) -> None:
    """Let the store's handler read what a model's builds need from S3.

    Raises:
        ConfigurationError: IAM would read an object key as a pattern.
    """
    if arns := sorted({object_arn(file) for file in files}):
        inline_grant(scope, _INPUTS, role, ["s3:GetObject"], arns)


def object_arn(file: S3File) -> str:
    """The ARN of the one object that a recipe reads.

    Raises:
        ConfigurationError: IAM would read the object key as a pattern.
    """
    if set("*?$") & set(file.key):
        raise ConfigurationError(
            f"the key of s3://{file.bucket}/{file.key} has a character that IAM reads as a wildcard, but the "
            "store's handler may read exact objects only: copy the object to a key without '*', '?' and '$'"
        )
    return f"arn:{Aws.PARTITION}:s3:::{file.bucket}/{file.key}"


def inline_grant(
    scope: Construct,
    id: str,
    role: iam.IRole,
    actions: Sequence[str],
    resources: Sequence[str],
) -> iam.Policy:
    """Give a role of the store permissions, by a policy of a model's stack.

    Args:
        scope: the model.
        id: the construct's id below it.
        role: the role.
        actions: the allowed actions.
        resources: the ARNs of their resources.
    """
    statement = iam.PolicyStatement(actions=list(actions), resources=list(resources))
    policy = iam.Policy(scope, id, policy_name=unique_name(scope, id), statements=[statement], roles=[role])
    reason = "A role can have ten managed policies only, and each model whose builds need a grant adds a policy."
    acknowledge_nist(policy, {"IAMNoInlinePolicy": reason})
    return policy
