"""What the library's own roles may do, in managed policies, and a user's roles in inline ones.

NIST 800-53 R5, as cdk-nag reads it (IAMNoInlinePolicy), wants no inline policies: a managed one has versions, and IAM
lists it with all who have it. Its price is a smaller limit.

CDK's grants write inline policies. So where an L2 of CDK would grant something to a role of ours, it gets the role
`without_policy_updates`, and what it needs is said here. That also spares the wildcards that CDK's grants contain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting.acknowledgements import acknowledge_nist
from cdk_triton.hosting.stacks import root_stack

__all__ = ["allow", "inline_policy", "policy_name"]

MAX_CHARACTERS = 6144
"""Of a managed policy, without whitespace ("IAM and AWS STS quotas"). A role takes ten of them."""

TOKEN_CHARACTERS = 150
"""What a reference is taken to be long: the ARN of a state machine, whose generated name has up to 80 characters."""

NAME_CHARACTERS = 80
"""Of an inline policy's name, which has up to 128 ("IAM and AWS STS quotas"): region and hashes need 40."""

_TOKEN = re.compile(r"[$#]\{Token\[[^]]*\]\}")


def allow(role: iam.Role, *statements: iam.PolicyStatement) -> None:
    """Allow a role something, by its managed policy `Permissions`; when that is full, by `Permissions2` and so on."""
    policy = role.node.try_find_child("Permissions")
    if not isinstance(policy, _Permissions):
        policy = _Permissions(role)
    policy.allow(statements)


def inline_policy(
    scope: Construct,
    id: str,  # noqa: A002 - CDK's name
    roles: Iterable[iam.IRole],
    statements: Sequence[iam.PolicyStatement] | None = None,
) -> iam.Policy:
    """A policy for roles of the user's, which may say that nobody changes them."""
    policy = iam.Policy(scope, id, policy_name=policy_name(scope, id), statements=statements)
    for role in roles:
        role.attach_inline_policy(policy)  # and not `roles=`, which asks no role
    acknowledge_nist(
        policy, {"IAMNoInlinePolicy": "Of all policies, CDK leaves only an inline one out where a role asks it."}
    )
    return policy


def policy_name(
    scope: Construct,
    id: str,  # noqa: A002 - CDK's name
) -> str:
    """A name for an inline policy of a role that other stacks, apps and regions may use too.

    A role has one inline policy of a name: a second overwrites the first. CDK names it by its logical id,
    which is the same in every stack. CloudFormation tells stacks apart by name and region, and CDK what is in them by
    path.
    """
    stack = root_stack(scope.node)
    place = "/".join((stack.stack_name, scope.node.path[len(stack.node.path) :], id))
    readable = re.sub(r"[^\w+=,.@-]+", "-", place, flags=re.ASCII)[:NAME_CHARACTERS]
    return f"{readable}-{stack.region}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


class _Permissions(iam.ManagedPolicy):
    """The first policy of a role, which knows the others and how full the last of them is."""

    def __init__(self, role: iam.Role) -> None:
        super().__init__(role, "Permissions", roles=[role])
        self._role = role
        self._policies: list[iam.ManagedPolicy] = [self]
        self._characters = 0

    def allow(self, statements: Iterable[iam.PolicyStatement]) -> None:
        """Add statements, as many at a time as fit."""
        fitting: list[iam.PolicyStatement] = []
        for statement in statements:
            characters = _characters(statement)
            if self._characters and self._characters + characters > MAX_CHARACTERS:
                self._policies[-1].add_statements(*fitting)
                self._policies.append(
                    iam.ManagedPolicy(self._role, f"Permissions{len(self._policies) + 1}", roles=[self._role])
                )
                self._characters, fitting = 0, []
            self._characters += characters
            fitting.append(statement)
        self._policies[-1].add_statements(*fitting)


def _characters(statement: iam.PolicyStatement) -> int:
    """How long a statement will be: what its references stand for is not known here."""
    text = json.dumps(statement.to_json(), separators=(",", ":"))
    return len(_TOKEN.sub("x" * TOKEN_CHARACTERS, text))
