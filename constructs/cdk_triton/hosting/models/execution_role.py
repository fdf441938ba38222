"""The permissions that SageMaker needs for a model, and no others.

The actions are those of SageMaker's documentation, "CreateModel API: Execution Role Permissions", each on the resources
of this model. Permission to read a model is given for a prefix, never for an object key, because while an endpoint is
updated or rolled back, old instances still start and read the old archive.

The statements are in a policy of the model, not of the role, because an acknowledgement for cdk-nag here must not cover
permissions that the user adds to the role. It is a managed policy for the library's own role, and an inline one for a
user's role, because the CDK would attach a managed policy even to a role without policy updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aws_cdk import Annotations, ArnFormat, Reference, Tokenization
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting.access.images import PULL_ACTIONS, ContainerImage
from cdk_triton.hosting.access.network import SAGEMAKER_PERMISSION, Network, acknowledge_network, network_statements
from cdk_triton.hosting.access.permissions import Statement, inline_policy, managed_policy
from cdk_triton.hosting.access.trust import require_trust_in_sagemaker, sagemaker_inference
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards, bucket_identity, imported_objects_arns
from cdk_triton.hosting.naming.per_construct import arn_of, path_of
from cdk_triton.hosting.naming.service_names import role_description
from cdk_triton.hosting.naming.stacks import require_same, stack_of
from cdk_triton.hosting.store.imported import keys_of
from cdk_triton.hosting.store.interface import ITritonArtifactStore

__all__ = [
    "COMPONENT_METRICS",
    "Execution",
    "check_role",
    "component_log_groups",
    "execution_of",
    "execution_role",
    "grant_component_execution",
    "grant_execution",
]

PULL_WARNING = "cdk-triton:ImagePullNotGranted"

METRIC_NAMESPACES = ("/aws/sagemaker/Endpoints", "AWS/SageMaker")
"""The namespaces of the metrics that SageMaker publishes about endpoints."""

COMPONENT_METRICS = "/aws/sagemaker/InferenceComponents"
"""The namespace of the metrics of inference components, and the beginning of the names of their log groups."""


class Execution(NamedTuple):
    """The facts from which the permissions of a model's containers follow: see `grant_execution`.

    Attributes:
        store: the store that keeps the archive.
        prefix: the object keys that the model is read from.
        image: the container's image.
        network: the subnets and security groups of the instances.
        network_isolation: whether the containers are cut off from every network.
    """

    store: ITritonArtifactStore
    prefix: str
    image: ContainerImage
    network: Network | None
    network_isolation: bool


def execution_of(model: object) -> Execution | None:
    """The facts of a model; None for a model of a user's own class."""
    return getattr(model, "_execution", None)


def check_role(scope: Construct, role: iam.IRole | None) -> None:
    """Reject a role that cannot be passed to SageMaker, or that SageMaker cannot assume.

    Raises:
        ConfigurationError: the role certainly belongs to an account other than the model's ("Grant a user permissions
            to pass a role to an AWS service" in IAM's user guide).
    """
    if role is not None:
        reason = "a role cannot be passed to a service of another account: use a role of the model's account"
        require_same("account", scope.node.path, stack_of(scope).account, role.node.path, role.env.account, reason)
        require_trust_in_sagemaker(scope, role)


def execution_role(scope: Construct, role: iam.IRole | None) -> iam.IRole:
    """The role that was given, or a new one that SageMaker can assume, the child `Role`."""
    if role is not None:
        return role
    return iam.Role(
        scope,
        "Role",
        assumed_by=sagemaker_inference(scope),
        description=role_description(f"cdk-triton: what the containers of {path_of(scope)} may do"),
    )


def grant_execution(
    role: iam.IRole,
    scope: Construct,
    store: ITritonArtifactStore,
    prefix: str,
    image: ContainerImage,
    network: Network | None = None,
) -> iam.ManagedPolicy | iam.Policy:
    """Allow what a Triton container needs, by a policy that must exist before the Model.

    Its id is `Permissions` for the child `Role` and `Policy` for a user's role, because CloudFormation rejects a change
    of a resource's type. If the permissions change, CloudFormation creates another policy and removes the old one last,
    because until the endpoint is updated, instances still start from the old prefix, store and image, and in the old
    subnets.

    Args:
        role: the execution role.
        scope: the model's construct.
        store: the store that keeps the archive.
        prefix: the object keys that the model is read from.
        image: the container's image.
        network: the subnets and security groups of the instances; None if they are in no VPC of the user.
    """
    decisive = [bucket_identity(scope, store.bucket), f"{prefix}*", *_repositories(image)]
    statements = _statements(scope, store, prefix, image, network, METRIC_NAMESPACES, [_endpoint_log_groups(scope)])
    if image.repository_arn is None:
        _warn_about_pull(scope, image, "model.role")
    policy = _policy(role, scope, statements, decisive)
    _acknowledge(policy, scope, store, f"{prefix}*", network, [_endpoint_log_groups(scope)])
    return policy


def grant_component_execution(role: iam.IRole, scope: Construct, execution: Execution) -> iam.ManagedPolicy:
    """Allow the role of an endpoint configuration what a model needs as an inference component: `Permissions`.

    The statements are those of the model's own role, plus the log group and the metrics of components. Like the model's
    own policy, this policy is replaced instead of changed.

    Args:
        role: the endpoint configuration's role.
        scope: the component.
        execution: what the model needs.
    """
    store, prefix, image, network, _ = execution
    decisive = [bucket_identity(scope, store.bucket), f"{prefix}*", *_repositories(image)]
    log_groups = [_endpoint_log_groups(scope), component_log_groups(scope)]
    namespaces = (*METRIC_NAMESPACES, COMPONENT_METRICS)
    statements = _statements(scope, store, prefix, image, network, namespaces, log_groups)
    if image.repository_arn is None:
        _warn_about_pull(scope, image, "components.role")
    policy = managed_policy(scope, "Permissions", [role], statements, decisive)
    _acknowledge(policy, scope, store, f"{prefix}*", network, log_groups)
    return policy


def component_log_groups(scope: Construct) -> str:
    """The ARN of the log groups of all inference components, which SageMaker names after them."""
    return _log_groups(scope, f"{COMPONENT_METRICS}/*")


def _endpoint_log_groups(scope: Construct) -> str:
    return _log_groups(scope, "/aws/sagemaker/Endpoints/*")


def _log_groups(scope: Construct, names: str) -> str:
    return stack_of(scope).format_arn(
        service="logs", resource="log-group", resource_name=names, arn_format=ArnFormat.COLON_RESOURCE_NAME
    )


def _statements(
    scope: Construct,
    store: ITritonArtifactStore,
    prefix: str,
    image: ContainerImage,
    network: Network | None,
    namespaces: Sequence[str],
    log_groups: Sequence[str],
) -> list[Statement]:
    bucket, objects = store.bucket, f"{prefix}*"
    bucket_arn = arn_of(bucket)
    statements = [
        Statement(actions=["s3:GetObject"], resources=[f"{bucket_arn}/{objects}"]),
        Statement(
            actions=["s3:ListBucket"],
            resources=[bucket_arn],
            conditions={"StringLike": {"s3:prefix": objects}},
        ),
        Statement(actions=["ecr:GetAuthorizationToken"], resources=["*"]),
        Statement(
            actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=log_groups,
        ),
        Statement(
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": list(namespaces)}},
        ),
    ]
    if image.repository_arn is not None:
        statements.append(Statement(actions=list(PULL_ACTIONS), resources=[image.repository_arn]))
    if network is not None:
        statements += network_statements(scope, network, permission=SAGEMAKER_PERMISSION)
    if keys := keys_of(bucket, store.former_keys):
        statements.append(Statement(actions=["kms:Decrypt"], resources=[key.key_arn for key in keys]))
    return statements


def _warn_about_pull(scope: Construct, image: ContainerImage, role: str) -> None:
    Annotations.of(scope).add_warning_v2(
        PULL_WARNING,
        f"the image {image.uri} does not name a repository of Amazon ECR, so the execution role got no permission "
        f"to pull the image: call grant_pull({role}) on the image's repository, then acknowledge this",
    )


def _acknowledge(
    policy: iam.ManagedPolicy | iam.Policy,
    scope: Construct,
    store: ITritonArtifactStore,
    objects: str,
    network: Network | None,
    log_groups: Sequence[str],
) -> None:
    archives = imported_objects_arns(scope, store.bucket, objects)
    reasons = {
        **dict.fromkeys(
            archives,
            "The policy allows a prefix, because during an update or a rollback of an endpoint, instances still "
            "start from the previous archives.",
        ),
        **{
            each: f"SageMaker names the log group after the {owner}, whose name is not known at synth."
            for owner, each in zip(("endpoint", "component"), log_groups, strict=False)
        },
        "*": "ecr:GetAuthorizationToken, cloudwatch:PutMetricData, which has a condition, and the ec2:Describe actions "
        "do not support resource-level permissions.",
    }
    acknowledge_wildcards(policy, reasons)
    if network is not None:
        acknowledge_network(policy)


def _policy(
    role: iam.IRole, scope: Construct, statements: Sequence[Statement], decisive: object
) -> iam.ManagedPolicy | iam.Policy:
    if role.node.scope is scope:
        return managed_policy(scope, "Permissions", [role], statements, decisive)
    return inline_policy(scope, "Policy", [role], statements, decisive)


def _repositories(image: ContainerImage) -> Iterator[str]:
    """The construct paths of the repositories of the app to which an image refers; a reference omits their stack."""
    if image.is_in_app and image.repository_arn is not None:
        for token in Tokenization.reverse_string(image.repository_arn).tokens:
            if isinstance(token, Reference):
                yield token.target.node.path
