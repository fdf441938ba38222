"""Records the stacks that use a store in the template of the store's stack.

Two apps that declare a store under the same stack name overwrite each other's permissions, and AWS cannot distinguish
the two. With these names, `cdk-triton doctor --app` warns before a deployment.
"""

from __future__ import annotations

from aws_cdk import CfnResource
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.hosting.naming.stacks import root_stack, stack_of
from cdk_triton.protocol.layout import USED_BY_METADATA

__all__ = ["record_user"]


def record_user(bucket: s3.IBucket, scope: Construct) -> None:
    """Add the stack of a construct to the users of a store, unless it is the store's own stack.

    Args:
        bucket: the store's bucket.
        scope: the construct that uses the store.
    """
    resource = bucket.node.default_child
    assert isinstance(resource, CfnResource)  # the store makes it
    user = root_stack(stack_of(scope))  # CloudFormation generates the name of a nested stack
    if user.node.path == root_stack(stack_of(bucket)).node.path:
        return
    names = {user.stack_name, *(resource.get_metadata(USED_BY_METADATA) or ())}
    resource.add_metadata(USED_BY_METADATA, sorted(names))
