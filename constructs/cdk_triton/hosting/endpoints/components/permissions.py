"""The policies of a component for two roles: that of its model, and that of the endpoint's configuration.

AWS does not document which of the two SageMaker uses, so both have the permissions.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.hosting.access.permissions import Statement, add_statements, managed_policy, warn_about_roles
from cdk_triton.hosting.endpoints.model_role_policies import allow_models
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.execution_role import (
    COMPONENT_METRICS,
    component_log_groups,
    execution_of,
    grant_component_execution,
)
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards

__all__ = ["ComponentPermissions"]


class ComponentPermissions:
    """The policies of both roles for one component, which is created after them and deleted before them.

    Args:
        scope: the component.
        component: the component's L1 construct.
        endpoint: the L1 construct of the component's endpoint.
        role: the role of the endpoint's configuration.
        model: the model that the component serves.
    """

    def __init__(
        self,
        scope: Construct,
        component: sagemaker.CfnInferenceComponent,
        endpoint: sagemaker.CfnEndpoint,
        role: iam.IRole,
        model: ITritonModel,
    ) -> None:
        self._scope = scope
        self._component = component
        self._role = role
        self._model = model
        self._of_configuration: iam.ManagedPolicy | None = None
        if (execution := execution_of(model)) is not None:
            self._of_configuration = grant_component_execution(role, scope, execution)
            component.node.add_dependency(self._of_configuration)
            endpoint.node.add_dependency(self._of_configuration)  # lets SageMaker use the VPC
        log_groups = component_log_groups(scope)
        statements = [
            Statement(
                actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                resources=[log_groups],
            ),
            Statement(
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],
                conditions={"StringEquals": {"cloudwatch:namespace": COMPONENT_METRICS}},
            ),
        ]
        reasons = {
            log_groups: "SageMaker names the log group after the component, whose name is not known at synth.",
            "*": "cloudwatch:PutMetricData, which has a condition, does not support resource-level permissions.",
        }
        served = [TritonVariant(model=model)]
        self._of_model = allow_models(scope, "Model", component, served, statements, [model.role.node.path])
        for own in self._of_model:
            acknowledge_wildcards(own, reasons)

    def allow(self, statement: Statement) -> None:
        """Give both roles another permission.

        The policies are changed in place, because a role can have only one for each component: see `limits`.
        """
        if self._of_configuration is None:
            self._of_configuration = managed_policy(self._scope, "Permissions", [self._role])
            self._component.node.add_dependency(self._of_configuration)
        for policy in (self._of_configuration, *self._of_model):
            add_statements(policy, [statement])
            if isinstance(policy, iam.Policy):
                added = iam.PolicyDocument(statements=[iam.PolicyStatement.from_json(statement.json)])
                warn_about_roles(self._scope, policy, [self._model.role], added)
