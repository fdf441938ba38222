"""The SageMaker Model that `TritonModel` and `TritonMultiModel` have in common."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from cdk_triton.hosting.access.network import Network, vpc_config
from cdk_triton.hosting.access.vpc_endpoints import await_network
from cdk_triton.hosting.naming.acknowledgements import skip_checkov

__all__ = ["sagemaker_model"]


def sagemaker_model(
    scope: Construct,
    container: sagemaker.CfnModel.ContainerDefinitionProperty,
    *,
    role: iam.IRole,
    policy: Construct,
    delivery: Construct,
    network: Network | None,
    network_isolation: bool,
) -> sagemaker.CfnModel:
    """Create the child `Resource` after everything that CreateModel and the model's instances need.

    Args:
        scope: the model's construct.
        container: the image, its model and its variables.
        role: the execution role.
        policy: the policy of the role.
        delivery: the custom resource that delivers the archives.
        network: the subnets and security groups; None outside a VPC of the user.
        network_isolation: whether the containers reach no network at all.
    """
    model = sagemaker.CfnModel(
        scope,
        "Resource",
        execution_role_arn=role.role_arn,
        vpc_config=vpc_config(network),
        enable_network_isolation=True if network_isolation else None,
        primary_container=container,
    )
    if not network_isolation:
        reason = "The model has no network_isolation=True, which suits models that fetch nothing while they serve."
        skip_checkov(model, {"CKV_AWS_370": reason})
    # CreateModel looks for the archive, with the role: both must exist. It does not look for those of a
    # multi-model endpoint, but one over an empty prefix comes up without a model.
    needed: list[IDependable] = [delivery, policy]
    if role.node.scope is scope:
        needed.append(role)  # what the user grants it later comes first too
    model.node.add_dependency(*needed)
    if network is not None:
        await_network(model, network, scope, "instances")
    return model
