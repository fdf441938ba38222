"""Resources that CloudFormation replaces where it would change them.

It makes the new one before, and removes the old one after everything that depends on them. A change in place comes
before that instead: what still runs would lose what it needs, also while a deployment is rolled back.
"""

from __future__ import annotations

import hashlib
import json

from aws_cdk import CfnElement, Stack
from constructs import Construct

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["change_id_with", "digest_of"]

DIGITS = 7
"""CDK's logical ids have up to 248 characters, CloudFormation's up to 255 ("CloudFormation quotas")."""


def change_id_with(construct: Construct, decisive: object) -> None:
    """Give the resource of a construct another logical id whenever something changes; its construct id stays.

    Args:
        construct: has the resource as its default child, unless CDK makes none, as for roles that exist already.
        decisive: what it is replaced with, of JSON and tokens.
    """
    resource = construct.node.default_child
    if not isinstance(resource, CfnElement):
        return
    stack = stack_of(construct)
    resource.override_logical_id(f"{stack.get_logical_id(resource)}{digest_of(stack, decisive)}")


def digest_of(stack: Stack, decisive: object) -> str:
    """Some digits that change with something.

    Args:
        stack: whose tokens it has.
        decisive: of JSON and tokens.
    """
    return hashlib.sha256(json.dumps(stack.resolve(decisive), sort_keys=True).encode()).hexdigest()[:DIGITS]
