"""The permissions of those who publish ensembles, and of those who read the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from cdk_triton.hosting.access.network import Network, network_of
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.imported import keys_of
from cdk_triton.hosting.store.interface import ITritonArtifactStore
from cdk_triton.protocol import layout
from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from aws_cdk import aws_stepfunctions as sfn

__all__ = ["Served", "executions_arn", "grant_publish", "grant_read_catalogue", "grant_read_published"]


class Served(NamedTuple):
    """The destination of published ensembles.

    Attributes:
        store: the artifact store.
        name: the name of the `TritonMultiModel` in it.
        platform: the platform that serves them.
    """

    store: ITritonArtifactStore
    name: str
    platform: ServingPlatform

    @property
    def network(self) -> Network | None:
        """The network of the store's functions in a VPC; None also if it is unknown, as for a store of another app."""
        return network_of(self.store)


def grant_publish(grantee: iam.IGrantable, served: Served, machine: sfn.CfnStateMachine) -> iam.Grant:
    """Allow a principal to run `cdk-triton fleet` with a publisher."""
    bucket, stack = served.store.bucket, stack_of(machine)
    # Each caller has a directory of its own, so the functions know who has written a request.
    requests = layout.publish_prefix(served.name, "${aws:userid}")
    # Not everything that the machine writes, because it keeps the sources of every caller's builds.
    failures = layout.publishing_failures_prefix(served.name, served.platform.label)
    needed = [
        Statement(["cloudformation:GetTemplate", "cloudformation:DescribeStackResource"], [stack.stack_id]),
        Statement(["s3:PutObject", "s3:AbortMultipartUpload"], [bucket.arn_for_objects(f"{requests}*")]),
        Statement(["s3:GetObject"], [bucket.arn_for_objects(f"{failures}*")]),
        Statement(["states:DescribeStateMachine", "states:StartExecution"], [machine.ref]),
        Statement(["states:DescribeExecution", "states:ListMapRuns"], [executions_arn(machine, ":*")]),
        Statement(["states:DescribeMapRun"], [_arn(machine, "mapRun", "/*")]),
    ]
    prefixes = [requests, failures, layout.fleet_prefix(served.name)]
    return _granted(grantee, served, needed, prefixes=prefixes, key_actions=["kms:Decrypt", "kms:GenerateDataKey"])


def grant_read_published(grantee: iam.IGrantable, served: Served, *, is_built: bool, is_rehearsed: bool) -> iam.Grant:
    """Allow a principal with `grant_publish` also to read the ensembles that are published for a platform.

    Args:
        grantee: the principal.
        served: the destination of published ensembles.
        is_built: whether archives are built from sources that are kept. Their prefixes are the names of repositories,
            which are not known yet.
        is_rehearsed: whether golden requests are kept, below the same prefixes.
    """
    bucket = served.store.bucket
    keys = [f"{layout.fleet_prefix(served.name, served.platform.label)}*"]
    if is_built:
        keys.append(layout.kept_sources_key("*", "*"))
    if is_rehearsed:
        keys.append(f"{layout.rehearsals_prefix('*', '*')}*")
    resources = [bucket.arn_for_objects(key) for key in keys]
    return iam.Grant.add_to_principal(grantee=grantee, actions=["s3:GetObject"], resource_arns=resources)


def grant_read_catalogue(grantee: iam.IGrantable, served: Served) -> iam.Grant:
    """Allow a principal to read the catalogue of a `TritonMultiModel` for every platform."""
    return _granted(grantee, served, [], prefixes=[], key_actions=["kms:Decrypt"])


def executions_arn(machine: sfn.CfnStateMachine, rest: str) -> str:
    """The ARN of a machine's executions; in those of a map run, a slash precedes the name."""
    return _arn(machine, "execution", rest)


def _arn(machine: sfn.CfnStateMachine, kind: str, rest: str) -> str:
    stack = stack_of(machine)
    return f"arn:{Aws.PARTITION}:states:{stack.region}:{stack.account}:{kind}:{machine.attr_name}{rest}"


def _granted(
    grantee: iam.IGrantable,
    served: Served,
    statements: Sequence[Statement],
    *,
    prefixes: Sequence[str],
    key_actions: Sequence[str],
) -> iam.Grant:
    """Allow the statements, and reading and listing the catalogue and listing other prefixes."""
    bucket, catalogue = served.store.bucket, layout.catalogue_prefix(served.name)
    listed: Mapping[str, Any] = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in (catalogue, *prefixes)]}}
    needed = [
        *statements,
        Statement(["s3:GetObject"], [bucket.arn_for_objects(f"{catalogue}*")]),
        Statement(["s3:ListBucket"], [bucket.bucket_arn], listed),
    ]
    if keys := keys_of(bucket, served.store.former_keys):
        needed.append(Statement(list(key_actions), [keys[0].key_arn]))
        if len(keys) > 1:
            needed.append(Statement(["kms:Decrypt"], [key.key_arn for key in keys[1:]]))
    grants = [
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(statement.actions),
            resource_arns=list(statement.resources),
            conditions=dict(statement.conditions) or None,
        )
        for statement in needed
    ]
    first, *others = grants
    for other in others:
        first = first.combine(other)
    return first
