"""The permissions of the library's own roles in managed policies, and of a user's roles in inline ones.

NIST 800-53 R5, as cdk-nag reads it (IAMNoInlinePolicy), accepts no inline policies: a managed policy has versions, and
IAM lists the roles that have it. But its size limit is smaller.

CDK's grants write inline policies. So if an L2 of CDK would grant something to a role of this library, the L2 gets the
role `without_policy_updates`, and the permissions are written here. That also avoids the wildcards that CDK's grants
contain.

Statements are Python objects until they are in a policy, because creating a statement of the CDK takes a jsii call, and
reading its length takes another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aws_cdk import Annotations
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting.naming.acknowledgements import acknowledge_nist
from cdk_triton.hosting.naming.logical_ids import digest_of
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of
from cdk_triton.hosting.naming.service_names import unique_name
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["Statement", "add_statements", "allow", "inline_policy", "managed_policy"]

ROLE_WARNING = "cdk-triton:RoleNotGranted"

MAX_CHARACTERS = 6144
"""The limit of a managed policy, without whitespace ("IAM and AWS STS quotas"). A role can have ten of them."""

TOKEN_CHARACTERS = 150
"""The assumed length of a reference: the ARN of a state machine, whose generated name has up to 80 characters."""

PSEUDO_CHARACTERS = {"AWS.Partition": 10, "AWS.Region": 15, "AWS.AccountId": 12}
"""The lengths of values that AWS has everywhere: `aws-us-gov`, `us-isof-south-1`, and an account."""

_TOKEN = re.compile(r"[$#]\{Token\[([^]]*)\.\d+\]\}")


class Statement(NamedTuple):
    """A statement of a policy.

    Attributes:
        actions: the IAM actions, such as `s3:GetObject`.
        resources: the ARNs of the resources; an ARN may be a token.
        conditions: the IAM conditions, by operator and then by condition key.
        effect: `Allow`, or `Deny` for an exception from what other statements allow.
    """

    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, str | Sequence[str]]] = {}
    effect: str = "Allow"

    @property
    def json(self) -> dict[str, Any]:
        """The statement as JSON of a policy."""
        allowed = {"Effect": self.effect, "Action": list(self.actions), "Resource": list(self.resources)}
        return {**allowed, "Condition": self.conditions} if self.conditions else allowed


def allow(role: iam.Role, *statements: Statement) -> None:
    """Give a role permissions, by its managed policy `Permissions`; when that is full, by `Permissions2` and so on."""
    _policies_of(role).allow(role, statements)


def managed_policy(
    scope: Construct,
    id: str,
    roles: Sequence[iam.IRole],
    statements: Iterable[Statement] = (),
    decisive: object = None,
) -> iam.ManagedPolicy:
    """A policy for the library's own roles.

    Args:
        scope: the parent.
        id: the construct's id.
        roles: the roles.
        statements: the permissions of the roles.
        decisive: JSON and tokens whose change replaces the policy, as a change of its statements does. None: the policy
            is changed in place. See `_replaceable`.
    """
    document = _document(statements)
    parent, own_id = (scope, id) if decisive is None else _replaceable(scope, id, document, decisive)
    policy = iam.ManagedPolicy(parent, own_id, roles=list(roles), document=document)
    if parent is not scope:
        parent.node.default_child = policy.node.default_child
    return policy


def inline_policy(
    scope: Construct,
    id: str,
    roles: Iterable[iam.IRole],
    statements: Iterable[Statement] = (),
    decisive: object = None,
) -> iam.Policy:
    """A policy for the user's own roles, with a warning for roles that do not accept changes; see `managed_policy`."""
    document, name = _document(statements), unique_name(scope, id)
    parent, own_id = (scope, id) if decisive is None else _replaceable(scope, id, document, decisive)
    if parent is not scope:
        name += own_id  # under the same name, the new policy would replace the old one and be deleted with it
    policy = iam.Policy(parent, own_id, policy_name=name, document=document)
    if parent is not scope:
        parent.node.default_child = policy.node.default_child
    roles = list(roles)
    for role in roles:
        role.attach_inline_policy(policy)  # `roles=` would attach it without calling the role
    warn_about_roles(scope, policy, roles, document)
    acknowledge_nist(
        policy, {"IAMNoInlinePolicy": "CDK can skip only inline policies on a role that takes no policy updates."}
    )
    return policy


def warn_about_roles(
    scope: Construct, policy: iam.Policy, roles: Iterable[iam.IRole], document: iam.PolicyDocument
) -> None:
    """Warn about roles that did not accept a policy of the app, so that somebody else has to grant what they need.

    Args:
        scope: the construct that gets the warning.
        policy: the policy, already offered to the roles.
        roles: the roles.
        document: what the warning lists: the policy's document, or what was added to it.
    """
    stack, resource = stack_of(policy), policy.node.default_child
    assert isinstance(resource, iam.CfnPolicy)  # the CDK's construct has one
    took = stack.resolve(resource.roles) or ()
    for role in roles:
        if stack.resolve(role.role_name) in took:
            continue
        statements = stack.resolve(document)["Statement"]
        Annotations.of(scope).add_warning_v2(
            ROLE_WARNING,
            f"the role {path_of(role)} takes no policy of this app (mutable=False, without_policy_updates, or another "
            f"account): make sure that its own policies allow {'; '.join(map(_in_words, statements))}; then "
            "acknowledge this",
        )


def _in_words(statement: Mapping[str, Any]) -> str:
    actions, resources = (_several(statement[name]) for name in ("Action", "Resource"))
    conditions = [
        f"{key} {operator} {' or '.join(map(_flat, _several(value)))}"
        for operator, keys in statement.get("Condition", {}).items()
        for key, value in keys.items()
    ]
    only = f" if {' and '.join(conditions)}" if conditions else ""
    return f"{', '.join(actions)} on {' and '.join(map(_flat, resources))}{only}"


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _flat(value: Any) -> str:
    """A text with the references in it as `${Name}`, and other functions as JSON."""
    match value:
        case {"Fn::Join": [separator, [*parts]]}:
            return str(separator).join(map(_flat, parts))
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case str():
            return value
    return json.dumps(value, sort_keys=True)


def add_statements(policy: iam.ManagedPolicy | iam.Policy, statements: Iterable[Statement]) -> None:
    """Add statements to a policy."""
    policy.add_statements(*(iam.PolicyStatement.from_json(statement.json) for statement in statements))


def _replaceable(scope: Construct, id: str, document: iam.PolicyDocument, decisive: object) -> tuple[Construct, str]:
    """The parent and the id of a policy that CloudFormation replaces instead of changing it.

    The digest is part of the construct path, not only of the logical id. So a name that an aspect derives from the path
    (or from `Names.unique_resource_name`) changes as well, and both policies can exist at the same time.
    """
    return Construct(scope, id), digest_of(stack_of(scope), [document, decisive])


class _Policies:
    """The managed policies of a role: their number, and the last one with its length."""

    def __init__(self) -> None:
        self._count = 0
        self._last: iam.ManagedPolicy | None = None
        self._characters = 0

    def allow(self, role: iam.Role, statements: Iterable[Statement]) -> None:
        """Add statements to the last policy, and to new ones once it is full."""
        fitting: list[Statement] = []
        for statement in statements:
            characters = _characters(statement)
            if self._characters and self._characters + characters > MAX_CHARACTERS:
                self._add(role, fitting)
                self._last, self._characters, fitting = None, 0, []
            self._characters += characters
            fitting.append(statement)
        self._add(role, fitting)

    def _add(self, role: iam.Role, statements: Sequence[Statement]) -> None:
        if self._last is None:
            self._count += 1
            name = "Permissions" if self._count == 1 else f"Permissions{self._count}"
            self._last = managed_policy(role, name, [role], statements)
        elif statements:
            add_statements(self._last, statements)


@cached_per_construct
def _policies_of(role: iam.Role) -> _Policies:
    return _Policies()


def _characters(statement: Statement) -> int:
    """The estimated length of a statement, because the values of its references are not known here."""
    text = json.dumps(statement.json, separators=(",", ":"))
    return len(_TOKEN.sub(lambda token: "x" * PSEUDO_CHARACTERS.get(token[1], TOKEN_CHARACTERS), text))


def _document(statements: Iterable[Statement]) -> iam.PolicyDocument:
    return iam.PolicyDocument.from_json({"Statement": [statement.json for statement in statements]})
