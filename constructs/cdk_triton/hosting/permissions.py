"""What the library's own roles may do, in managed policies, and a user's roles in inline ones.

NIST 800-53 R5, as cdk-nag reads it (IAMNoInlinePolicy), wants no inline policies: a managed one has versions, and IAM
lists it with all who have it. Its price is a smaller limit.

CDK's grants write inline policies. So where an L2 of CDK would grant something to a role of ours, it gets the role
`without_policy_updates`, and what it needs is said here. That also spares the wildcards that CDK's grants contain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting.acknowledgements import acknowledge_nist

__all__ = ["allow", "inline_policy"]

MAX_CHARACTERS = 6144
"""Of a managed policy, without whitespace ("IAM and AWS STS quotas"). A role takes ten of them."""

TOKEN_CHARACTERS = 100
"""What a reference is taken to grow by when it becomes an ARN: generated names have up to 64 characters."""


_filled: WeakKeyDictionary[iam.ManagedPolicy, int] = WeakKeyDictionary()
"""Characters that each policy has."""


def allow(role: iam.Role, *statements: iam.PolicyStatement) -> None:
    """Allow a role something, by its managed policy `Permissions`; when that is full, by `Permissions2` and so on."""
    for statement in statements:
        added = _characters(role, statement)
        policy = _policy_with_room(role, added)
        policy.add_statements(statement)
        _filled[policy] = _filled.get(policy, 0) + added


def inline_policy(
    scope: Construct,
    id: str,  # noqa: A002 - CDK's name
    roles: Iterable[iam.IRole],
    statements: Sequence[iam.PolicyStatement] | None = None,
) -> iam.Policy:
    """A policy for roles of the user's, which may say that nobody changes them."""
    policy = iam.Policy(scope, id, statements=statements)
    for role in roles:
        role.attach_inline_policy(policy)  # and not `roles=`, which asks no role
    acknowledge_nist(
        policy, "IAMNoInlinePolicy", "Of all policies, CDK leaves only an inline one out where a role asks it."
    )
    return policy


def _policy_with_room(role: iam.Role, added: int) -> iam.ManagedPolicy:
    policies = [child for child in role.node.children if isinstance(child, iam.ManagedPolicy)]
    if policies and _filled.get(policies[-1], 0) + added <= MAX_CHARACTERS:
        return policies[-1]
    return iam.ManagedPolicy(role, f"Permissions{len(policies) + 1 if policies else ''}", roles=[role])


def _characters(role: iam.Role, statement: iam.PolicyStatement) -> int:
    text = json.dumps(Stack.of(role).resolve(statement.to_json()), separators=(",", ":"))
    return len(text) + TOKEN_CHARACTERS * (text.count('"Ref":') + text.count('"Fn::GetAtt":') + text.count("${"))
