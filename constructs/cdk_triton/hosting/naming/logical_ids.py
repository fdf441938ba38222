"""Logical ids that decide whether CloudFormation changes a resource in place or replaces it.

CloudFormation creates a resource with a new logical id before everything that depends on it, and removes the old one
afterwards. Permissions have to change in this way (`change_id_with`), because a change in place would take them away
from what is still running, even during a rollback. A resource whose name exists once cannot change in this way
(`identify_by_name`), because the service rejects the second resource of this name.
"""

from __future__ import annotations

import hashlib
import json
import re

from aws_cdk import CfnElement, Stack
from constructs import Construct

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["change_id_with", "digest_of", "identify_by_name"]

DIGITS = 7
"""The CDK's logical ids have up to 248 characters, and CloudFormation allows 255 ("CloudFormation quotas")."""
_LENGTH = 255 - DIGITS


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


def identify_by_name(construct: Construct, name: str) -> None:
    """Derive the logical id of a resource from its name, so that the resource stays if its construct moves.

    Args:
        construct: the construct whose default child is the resource.
        name: the name, which only one resource of the account and region can have.
    """
    resource = construct.node.default_child
    assert isinstance(resource, CfnElement)
    letters = re.sub(r"[^A-Za-z0-9]", "", name)
    resource.override_logical_id(f"{letters[:_LENGTH]}{digest_of(stack_of(construct), name)}")


def digest_of(stack: Stack, decisive: object) -> str:
    """A short hash of JSON and tokens.

    Args:
        stack: the stack that resolves the tokens.
        decisive: the hashed value.
    """
    return hashlib.sha256(json.dumps(stack.resolve(decisive), sort_keys=True).encode()).hexdigest()[:DIGITS]
