"""What an endpoint adds to the roles of its models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from cdk_triton.hosting.variant import TritonVariant

__all__ = ["allow_models"]


def allow_models(
    scope: Construct,
    id: str,  # noqa: A002 - CDK's name
    before: IConstruct,
    variants: Iterable[TritonVariant],
    statements: Sequence[iam.PolicyStatement],
) -> iam.Policy:
    """Allow the roles of all variants something, by one policy of the endpoint's own.

    It is no part of the models: what an endpoint needs beside serving ends with the endpoint.

    Args:
        scope: the endpoint.
        id: the policy's id; there may be one already, which gets the statements.
        before: what must not exist before the policy, nor outlive it.
        variants: whose models' roles.
        statements: what they may do.
    """
    found = scope.node.try_find_child(id)
    if isinstance(found, iam.Policy):
        found.add_statements(*statements)
        return found
    policy = iam.Policy(scope, id, statements=statements)
    for role in {variant.model.role.node.path: variant.model.role for variant in variants}.values():
        role.attach_inline_policy(policy)  # and not `roles=`: a role may say that nobody changes it
    before.node.add_dependency(policy)
    return policy
