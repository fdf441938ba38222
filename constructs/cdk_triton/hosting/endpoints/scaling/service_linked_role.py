"""The role by which Application Auto Scaling changes the instance counts of SageMaker's variants."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["service_linked_role"]


def service_linked_role(scope: Construct) -> iam.IRole:
    """The role of Application Auto Scaling for SageMaker.

    The service creates this role in every account when the first variant is registered, and uses no other role
    (Application Auto Scaling user guide, "Amazon SageMaker AI and Application Auto Scaling"). By default, the CDK would
    create another role, which is never used.
    """
    arn = stack_of(scope).format_arn(
        service="iam",
        region="",
        resource="role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com",
        resource_name="AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint",
    )
    return iam.Role.from_role_arn(scope, "ServiceLinkedRole", arn, mutable=False)
