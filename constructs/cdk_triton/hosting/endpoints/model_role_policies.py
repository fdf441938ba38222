"""The policies that an endpoint adds to the roles of its models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from cdk_triton.hosting.access.permissions import (
    Statement,
    add_statements,
    inline_policy,
    managed_policy,
    warn_about_roles,
)
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant

__all__ = ["allow_models"]


def allow_models(
    scope: Construct,
    id: str,
    before: IConstruct,
    variants: Iterable[TritonVariant],
    statements: Sequence[Statement],
    decisive: object = None,
) -> list[iam.ManagedPolicy | iam.Policy]:
    """Give the roles of all variants' models permissions, through policies that belong to the endpoint.

    The policies are not part of the models, because they are deleted with the endpoint. As with the models' policies,
    the library's own roles get managed policies, and a user's roles inline ones (see `execution_role`).

    Args:
        scope: the endpoint.
        id: the beginning of the policies' ids. Existing policies with such ids get the statements.
        before: the resource that is created after the policies and deleted before them.
        variants: the variants whose models' roles get the permissions.
        statements: the permissions of the roles.
        decisive: a value whose change replaces the policies. None: the policies are changed in place, and may exist
            already.
    """
    ours: dict[str, iam.IRole] = {}
    theirs: dict[str, iam.IRole] = {}
    for model in (model for variant in variants for model in variant.models):
        owner = model.role.node.scope
        made_here = owner is not None and owner.node.path == model.node.path
        (ours if made_here else theirs)[model.role.node.path] = model.role
    policies: list[iam.ManagedPolicy | iam.Policy] = []
    if ours:
        found = scope.node.try_find_child(f"{id}Permissions")
        if not isinstance(found, iam.ManagedPolicy):
            found = managed_policy(scope, f"{id}Permissions", list(ours.values()), statements, decisive)
            before.node.add_dependency(found)
        else:
            add_statements(found, statements)
        policies.append(found)
    if theirs:
        inline = scope.node.try_find_child(f"{id}Policy")
        if not isinstance(inline, iam.Policy):
            inline = inline_policy(scope, f"{id}Policy", theirs.values(), statements, decisive)
            before.node.add_dependency(inline)
        else:
            add_statements(inline, statements)
            added = iam.PolicyDocument(
                statements=[iam.PolicyStatement.from_json(statement.json) for statement in statements]
            )
            warn_about_roles(scope, inline, theirs.values(), added)
        policies.append(inline)
    return policies
