"""Resources that CloudFormation replaces instead of changing them.

CloudFormation creates the new resource before everything that depends on it, and removes the old one afterwards. A
change in place would take permissions away from what is still running, even during a rollback.
"""

from __future__ import annotations

import hashlib
import json

from aws_cdk import CfnElement, Stack
from constructs import Construct

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["change_id_with", "digest_of"]

DIGITS = 7
"""The CDK's logical ids have up to 248 characters, and CloudFormation allows 255 ("CloudFormation quotas")."""


def change_id_with(construct: Construct, decisive: object) -> None:
    """Give the resource of a construct another logical id whenever something changes; the construct id stays.

    Args:
        construct: the construct whose default child is the resource. The CDK makes none for an imported role.
        decisive: JSON and tokens whose change replaces the resource.
    """
    resource = construct.node.default_child
    if not isinstance(resource, CfnElement):
        return
    stack = stack_of(construct)
    resource.override_logical_id(f"{stack.get_logical_id(resource)}{digest_of(stack, decisive)}")


def digest_of(stack: Stack, decisive: object) -> str:
    """A short hash of JSON and tokens.

    Args:
        stack: the stack that resolves the tokens.
        decisive: the hashed value.
    """
    return hashlib.sha256(json.dumps(stack.resolve(decisive), sort_keys=True).encode()).hexdigest()[:DIGITS]
