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
    """Create the scalable target, the child `Resource`.

    Args:
        scope: the parent.
        scalable_dimension: Application Auto Scaling's name of the scaled property.
        resource_id: Application Auto Scaling's id of the variant or component.
        capacities: the minimum and the maximum.
        after: the endpoint or component, which is created before the target and deleted after it.
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
    # SageMaker does, and a role that is named must exist already, and the deploying principal must be allowed to pass
    # it.
    target.add_property_deletion_override("RoleARN")
    # Application Auto Scaling rejects a variant that does not exist, and SageMaker the deletion of an endpoint
    # with registered variants by a principal that may not deregister them.
    target.node.add_dependency(after)
    return made
