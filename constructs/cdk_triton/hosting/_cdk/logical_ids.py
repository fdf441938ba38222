"""Resources that CloudFormation replaces where it would change them.

It makes the new one before, and removes the old one after everything that depends on them. A change in place comes
before that instead: what still runs would lose what it needs, also while a deployment is rolled back.
"""

from __future__ import annotations

import hashlib
import json

from aws_cdk import CfnElement
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting._cdk.stacks import stack_of

__all__ = ["change_id_with"]

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
    digest = hashlib.sha256(json.dumps(stack.resolve(decisive), sort_keys=True).encode()).hexdigest()[:DIGITS]
    resource.override_logical_id(f"{stack.get_logical_id(resource)}{digest}")
    if isinstance(resource, iam.CfnPolicy):
        # A role has one inline policy of a name: the new one would be the old one, and go with it.
        resource.policy_name = f"{resource.policy_name}{digest}"
