"""`TritonComponent`: one inference component of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aws_cdk import Duration, Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting._cdk.arguments import checked
from cdk_triton.hosting._cdk.logical_ids import change_id_with
from cdk_triton.hosting.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.components.names import generated_name, name_in_arn
from cdk_triton.hosting.endpoints.invoke_grants import allow_invocation
from cdk_triton.hosting.endpoints.model_role_policies import allow_models
from cdk_triton.hosting.metrics import ComponentMetrics
from cdk_triton.hosting.models.execution_role import (
    COMPONENT_METRICS,
    component_log_groups,
    execution_of,
    grant_component_execution,
)
from cdk_triton.hosting.models.model import ITritonModel
from cdk_triton.hosting.permissions import Statement
from cdk_triton.hosting.variant import TritonVariant, default_timeouts
from cdk_triton.sagemaker import CopyRequirements

if TYPE_CHECKING:  # takes a while: for components that are scaled
    from cdk_triton.hosting.components.components import TritonComponents
    from cdk_triton.hosting.scaling.copy_count import ScalableCopyCount

__all__ = ["TritonComponent"]


class TritonComponent(Resource, ComponentMetrics):
    """One inference component: a model in copies, which callers invoke by the component's name.

    `TritonComponents.add_component` makes it.

    Attributes:
        model: what it serves.
        requirements: what one copy reserves.
        copies: copies at first.

    Args:
        scope: the parent.
        id: the construct's id.
        endpoint: the endpoint.
        endpoint_resource: its L1.
        role: the role of the endpoint's configuration.
        model: what it serves.
        requirements: what one copy reserves.
        copies: copies at first.
        given_name: the endpoint's name, where the user gave one.
        variant_name: the endpoint's variant.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: TritonComponents,
        endpoint_resource: sagemaker.CfnEndpoint,
        role: iam.IRole,
        model: ITritonModel,
        requirements: CopyRequirements,
        copies: int,
        given_name: str | None,
        variant_name: str,
    ) -> None:
        super().__init__(scope, id)
        self.model = model
        self.requirements = requirements
        self.copies = copies
        self._endpoint = endpoint
        self._copy_count: ScalableCopyCount | None = None
        start, download = default_timeouts(model.size)
        startup = sagemaker.CfnInferenceComponent.InferenceComponentStartupParametersProperty(
            container_startup_health_check_timeout_in_seconds=start, model_data_download_timeout_in_seconds=download
        )
        compute = sagemaker.CfnInferenceComponent.InferenceComponentComputeResourceRequirementsProperty(
            number_of_accelerator_devices_required=requirements.accelerators,
            number_of_cpu_cores_required=requirements.cpus or None,
            min_memory_required_in_mb=requirements.memory_mib,
        )
        self._component = sagemaker.CfnInferenceComponent(
            self,
            "Resource",
            inference_component_name=generated_name(self, given_name),
            endpoint_name=endpoint_resource.attr_endpoint_name,
            variant_name=variant_name,
            specification=sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty(
                model_name=model.model_name,
                compute_resource_requirements=compute,
                startup_parameters=None if start is None and download is None else startup,
            ),
            runtime_config=sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(copy_count=copies),
        )
        if given_name is not None:
            change_id_with(self, given_name)  # UpdateInferenceComponent takes no other endpoint
        self._allow(endpoint_resource, role)

    def _allow(self, endpoint: sagemaker.CfnEndpoint, role: iam.IRole) -> None:
        """Allow both roles to run the model: which of the two SageMaker uses is not documented.

        A component goes before its model, and before what both roles may do.
        """
        self._component.node.add_dependency(self.model)
        if (execution := execution_of(self.model)) is not None:
            policy = grant_component_execution(role, self, execution)
            self._component.node.add_dependency(policy)
            endpoint.node.add_dependency(policy)  # whose instances are put into the VPC with it
        log_groups = component_log_groups(self)
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
            log_groups: "SageMaker names the log group after the component, which is made later.",
            "*": "cloudwatch:PutMetricData, which has a condition, knows no resources.",
        }
        served = [TritonVariant(model=self.model)]
        decisive = [self.model.role.node.path]
        for own in allow_models(self, "Model", self._component, served, statements, decisive):
            acknowledge_wildcards(own, reasons)

    @property
    def component_name(self) -> str:
        """Its name, for `InferenceComponentName` of InvokeEndpoint, from its ARN; a token."""
        return name_in_arn(self.component_arn)

    @property
    def component_arn(self) -> str:
        """Its ARN, which `Ref` returns: the primary identifier in CloudFormation's schema."""
        return self._component.ref

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """`InferenceComponentName`."""
        return {"InferenceComponentName": self.component_name}

    @property
    def scalable_copy_count(self) -> ScalableCopyCount | None:
        """The result of `auto_scale_copies` or `scale_to_zero`; None where the number of copies is fixed."""
        return self._copy_count

    @property
    def min_copies(self) -> int:
        """Copies at least."""
        return self.copies if self._copy_count is None else self._copy_count.min_capacity

    @property
    def max_copies(self) -> int:
        """Copies at most."""
        return self.copies if self._copy_count is None else self._copy_count.max_capacity

    def auto_scale_copies(self, *, min_capacity: int, max_capacity: int) -> ScalableCopyCount:
        """Let the number of copies follow the load; each component of an endpoint scales by itself.

        Args:
            min_capacity: copies at least, 1 or more.
            max_capacity: copies at most.

        Returns:
            The limits, to which policies are added, such as `.scale_on_invocations(...)`.

        Raises:
            ConfigurationError: the limits contradict each other or the copies at first, or the component is scaled
                already.
        """
        if min_capacity == 0 and not isinstance(min_capacity, bool):
            raise ConfigurationError(
                f"min_capacity of {self._what} is 0, and target tracking does not start a first copy: call "
                "scale_to_zero(), which adds the policy and the alarm that do"
            )
        return self._scalable(min_capacity, max_capacity)

    @checked
    def scale_to_zero(
        self,
        id: str,
        *,
        max_capacity: int,
        max_requests_per_second: float,
        safety_factor: float = 0.5,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> ScalableCopyCount:
        """Let the number of copies follow the load down to none, and start one when a request finds none.

        Requests without a copy fail until one has started, which takes minutes where an instance has to start too: the
        caller repeats them. Instances go where `min_instance_count` is 0 and every component scales to zero.

        Args:
            id: the id of the target tracking policy.
            max_capacity: copies at most.
            max_requests_per_second: what one copy answers at most, from a load test.
            safety_factor: the share of it to aim at, above 0 and at most 1.
            scale_in_cooldown: pause after copies were taken away; 10 minutes by default.
            scale_out_cooldown: pause after copies were added; 5 minutes by default.

        Returns:
            The limits, to which further policies may be added.

        Raises:
            ConfigurationError: a number is out of its range, or the component is scaled already.
        """
        from cdk_triton.hosting.scaling.copy_count import check_invocations

        check_invocations(f"policy {id!r} of {self._what}", max_requests_per_second, safety_factor)
        count = self._scalable(0, max_capacity)
        count.scale_on_invocations(
            id,
            max_requests_per_second=max_requests_per_second,
            safety_factor=safety_factor,
            scale_in_cooldown=scale_in_cooldown,
            scale_out_cooldown=scale_out_cooldown,
        )
        count._start_from_zero()
        return count

    @checked
    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to invoke this component.

        InvokeEndpoint needs the endpoint, and may name components besides ("Actions, resources, and condition keys for
        Amazon SageMaker AI": `endpoint*` and `inference-component`; there is no condition key for components).

        Args:
            grantee: the principal.
        """
        grant = allow_invocation(self._endpoint, grantee, self._endpoint.endpoint_arn, None, lambda _: None)
        return grant.combine(self._grant(grantee))

    def _grant(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal this component, without its endpoint."""
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=["sagemaker:InvokeEndpoint"], resource_arns=[self.component_arn]
        )

    @property
    def _what(self) -> str:
        return f"component {self.node.id} of {self._endpoint.node.path}"

    def _scalable(self, min_capacity: int, max_capacity: int) -> ScalableCopyCount:
        from cdk_triton.hosting.scaling.copy_count import ScalableCopyCount, check_copy_capacities

        if self._copy_count is not None:
            raise ConfigurationError(
                f"{self._what} is scaled already: add policies to what the first auto_scale_copies or scale_to_zero "
                "returned"
            )
        check_copy_capacities(self._what, self.copies, min_capacity, max_capacity)
        self._copy_count = ScalableCopyCount(
            self,
            "CopyCount",
            component_name=self.component_name,
            component=self._component,
            what=self._what,
            metrics=self,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
        )
        return self._copy_count
