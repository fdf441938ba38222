"""The scalable target of a variant's instances or of a component's copies."""

from __future__ import annotations

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct, IDependable

from cdk_triton.hosting.endpoints.scaling.service_linked_role import service_linked_role

__all__ = ["scalable_target"]


def scalable_target(
    scope: Construct,
    *,
    scalable_dimension: str,
    resource_id: str,
    capacities: tuple[int, int],
    after: IDependable,
) -> autoscaling.ScalableTarget:
    """The child `Resource`.

    Args:
        scope: the parent.
        scalable_dimension: what is scaled, as Application Auto Scaling calls it.
        resource_id: what it is scaled of.
        capacities: the least and the most.
        after: what must exist before, and goes after: the endpoint, or the component.
    """
    made = autoscaling.ScalableTarget(
        scope,
        "Resource",
        service_namespace=autoscaling.ServiceNamespace.SAGEMAKER,
        scalable_dimension=scalable_dimension,
        resource_id=resource_id,
        min_capacity=capacities[0],
        max_capacity=capacities[1],
        role=service_linked_role(scope),
    )
    target = made.node.default_child
    assert isinstance(target, autoscaling.CfnScalableTarget)  # the CDK's construct has one
    # "This parameter is required for services that do not support service-linked roles" (RegisterScalableTarget).
    # SageMaker does, and a role that is named has to exist already, and to be passed by who deploys.
    target.add_property_deletion_override("RoleARN")
    # Application Auto Scaling refuses a variant that does not exist, and SageMaker the deletion of an endpoint
    # whose variants are still registered by somebody who may not deregister them.
    target.node.add_dependency(after)
    return made
