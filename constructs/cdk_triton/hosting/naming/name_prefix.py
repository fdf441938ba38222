"""`NamePrefix`: an aspect that gives roles and managed policies names with a prefix of the user's."""

from __future__ import annotations

import hashlib
import re

import jsii
from aws_cdk import CfnResource, IAspect
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import root_stack, stack_of

__all__ = ["NamePrefix"]

NAMES = {"AWS::IAM::Role": ("RoleName", 64), "AWS::IAM::ManagedPolicy": ("ManagedPolicyName", 128)}
"""The property with the name, and its maximum length ("IAM and AWS STS quotas")."""

REGION_CHARACTERS, HASH_CHARACTERS = 15, 8
"""The longest region is `us-isof-south-1`. The hash distinguishes names that are cut."""

_PREFIX = re.compile(r"[\w+=,.@-]{1,20}", re.ASCII)


@jsii.implements(IAspect)
class NamePrefix:
    """An aspect that names every unnamed role and managed policy in its scope.

    If your organisation allows only names with a certain prefix, apply the aspect:
    `Aspects.of(app).add(NamePrefix("bank-"))`. A name consists of the prefix, a part of the construct's path, the
    region, and a hash of stack name and path, so names do not collide between the stacks and regions of an account. If
    the permissions of an execution role change, its policy gets another construct path, and therefore another name.
    CloudFormation can then create the new policy before it deletes the old one.

    A role or policy that is deployed already is replaced when the aspect names it.

    Args:
        prefix: up to 20 letters, digits and `+=,.@_-`, such as `bank-`.

    Raises:
        ConfigurationError: the prefix is empty, is too long, or contains another character.
    """

    @checked
    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ConfigurationError(
                f"the prefix of NamePrefix is {prefix!r}: use 1 to 20 letters, digits and '+=,.@_-', such as 'bank-'"
            )
        self._prefix = prefix

    def visit(self, node: IConstruct) -> None:
        """Name a construct; the CDK calls this for every construct in the aspect's scope."""
        if isinstance(node, CfnResource) and node.cfn_resource_type in NAMES and not _is_named(node):
            name, characters = NAMES[node.cfn_resource_type]
            node.add_property_override(name, self._name(node, characters))

    def _name(self, node: CfnResource, characters: int) -> str:
        stack = stack_of(node)
        root = root_stack(stack)
        path = node.node.path[len(root.node.path) :].removesuffix("/Resource")
        digits = hashlib.sha256(f"{root.stack_name}{path}".encode()).hexdigest()[:HASH_CHARACTERS]
        available = characters - len(self._prefix) - REGION_CHARACTERS - HASH_CHARACTERS - len("--")
        readable = re.sub(r"[^\w+=,.@-]+", "-", path, flags=re.ASCII).strip("-")[:available]
        return f"{self._prefix}{readable}-{stack.region}-{digits}"


def _is_named(node: CfnResource) -> bool:
    """Whether the app names the resource. A construct of the CDK without a name has a token that resolves to None."""
    name = node.role_name if isinstance(node, iam.CfnRole) else None
    if isinstance(node, iam.CfnManagedPolicy):
        name = node.managed_policy_name
    return stack_of(node).resolve(name) is not None
