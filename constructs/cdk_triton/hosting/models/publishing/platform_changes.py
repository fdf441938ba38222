"""Lets the store's handler check a change of the platform before a deployment changes anything else.

The custom resource of the `TritonMultiModel` gets the platform and the command that publishes for it. CloudFormation
sends the previous values with each update, so the handler notices a change (`lambda/artifacts/platform_change.py`).
"""

from __future__ import annotations

from aws_cdk import CfnResource, CustomResource
from constructs import Construct

from cdk_triton.artifacts.publisher_description import platform_name
from cdk_triton.hosting.access.vpc_endpoints import await_vpc_endpoints
from cdk_triton.hosting.models.publishing.grants import Served
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["check_platform_changes"]


def check_platform_changes(multi_model: Construct, served: Served, delivery: CustomResource) -> None:
    """Make the handler check a change of the platform.

    Args:
        multi_model: the `TritonMultiModel`.
        served: the destination of published ensembles.
        delivery: the custom resource of the `TritonMultiModel`.
    """
    stack = stack_of(multi_model)
    path = multi_model.node.path.removeprefix(f"{stack.node.path}/")
    resource = delivery.node.default_child
    assert isinstance(resource, CfnResource)  # as CDK makes it
    command = f"cdk-triton fleet publish --all --platform {platform_name(served.platform)}"
    resource.add_property_override("PublishedPlatform", served.platform.label)
    resource.add_property_override("PublishCommand", f"{command} --fleet {stack.stack_name}/{path}")
    if served.network is not None:
        await_vpc_endpoints(resource, served.network, multi_model, "platform checks")
