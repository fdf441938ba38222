"""Which stacks of the app use a store, written into the template of the store's stack.

Two apps that declare one store by the same stack name overwrite each other's permissions, and AWS cannot distinguish
the two. By the names, `cdk-triton doctor --app` warns before a deployment.
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
        bucket: the store's.
        scope: what uses the store.
    """
    resource = bucket.node.default_child
    assert isinstance(resource, CfnResource)  # the store makes it
    user = root_stack(stack_of(scope))  # CloudFormation makes up the name of a nested stack
    if user.node.path == root_stack(stack_of(bucket)).node.path:
        return
    names = {user.stack_name, *(resource.get_metadata(USED_BY_METADATA) or ())}
    resource.add_metadata(USED_BY_METADATA, sorted(names))
