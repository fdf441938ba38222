"""`TritonComponent`: one inference component of an endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from aws_cdk import Duration, Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, Node

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.components.names import generated_name, name_in_arn
from cdk_triton.hosting.endpoints.components.permissions import ComponentPermissions
from cdk_triton.hosting.endpoints.components.updates import ComponentUpdates, batch_copies
from cdk_triton.hosting.endpoints.invoke_grants import INVOKE_ACTIONS
from cdk_triton.hosting.endpoints.parameters import allow_component_reading, put_component_parameter
from cdk_triton.hosting.endpoints.scaling.capacities import capacity_range
from cdk_triton.hosting.endpoints.updates.policies import Capacity, Rolling
from cdk_triton.hosting.endpoints.updates.rollback_alarms import alarms_of
from cdk_triton.hosting.endpoints.variants.metrics import ComponentMetrics
from cdk_triton.hosting.endpoints.variants.variant import default_timeouts
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.logical_ids import change_id_with
from cdk_triton.sagemaker import CopyRequirements

if TYPE_CHECKING:  # slow to import, and only needed for scaling
    from aws_cdk import aws_cloudwatch as cloudwatch

    from cdk_triton.hosting.endpoints.scaling.copy_count import ScalableCopyCount

__all__ = ["TritonComponent"]


class _Endpoint(Protocol):
    """What a component needs from its `TritonComponents`, which imports this module."""

    @property
    def node(self) -> Node: ...

    def _grant(self, grantee: iam.IGrantable) -> iam.Grant: ...


class TritonComponent(Resource, ComponentMetrics):
    """One inference component: copies of a model, which callers invoke by the component's name.

    `TritonComponents.add_component` creates it.

    Attributes:
        model: the model that the component serves.
        requirements: the GPUs, vCPUs and memory that one copy reserves.
        copies: the number of copies that the component starts with.

    Args:
        scope: the parent.
        id: the construct's id.
        endpoint: the `TritonComponents` that hosts the component.
        endpoint_resource: the endpoint's L1 construct.
        role: the role of the endpoint's configuration.
        model: the model that the component serves.
        requirements: the GPUs, vCPUs and memory that one copy reserves.
        copies: the number of copies that the component starts with.
        given_name: the endpoint's name, if the user gave one.
        variant_name: the name of the endpoint's only variant.
        deployment_policy: how SageMaker updates the component. None: SageMaker decides.
        ssm_parameter_path: the endpoint's path in the Parameter Store, if it has one.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: _Endpoint,
        endpoint_resource: sagemaker.CfnEndpoint,
        role: iam.IRole,
        model: ITritonModel,
        requirements: CopyRequirements,
        copies: int,
        given_name: str | None,
        variant_name: str,
        deployment_policy: Rolling | None = None,
        ssm_parameter_path: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.model = model
        self.requirements = requirements
        self.copies = copies
        self._endpoint = endpoint
        self._copy_count: ScalableCopyCount | None = None
        self._name = generated_name(self, given_name)
        self._policy = deployment_policy
        start, download = default_timeouts([model])
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
            inference_component_name=self._name,
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
        self._component.node.add_dependency(self.model)
        permissions = ComponentPermissions(self, self._component, endpoint_resource, role, model)
        self._updates = ComponentUpdates(
            self, self._component, endpoint_resource, deployment_policy, permissions.allow, self._copy_range
        )
        self._parameter_path = ssm_parameter_path
        if ssm_parameter_path is not None:
            put_component_parameter(self, ssm_parameter_path, self.component_name)

    @property
    def component_name(self) -> str:
        """The component's name, a token derived from the ARN, for `InferenceComponentName` of InvokeEndpoint."""
        return name_in_arn(self.component_arn)

    @property
    def component_arn(self) -> str:
        """The component's ARN.

        `Ref` returns the ARN, because it is the primary identifier in CloudFormation's schema.
        """
        return self._component.ref

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimension `InferenceComponentName`.

        Its value is the name that the library generates, and not a reference to the component. So an alarm on these
        metrics does not depend on the component, and CloudFormation can create the alarm first.
        """
        return {"InferenceComponentName": self._name}

    @property
    def scalable_copy_count(self) -> ScalableCopyCount | None:
        """The result of `auto_scale_copies` or `scale_to_zero`; None if the number of copies is fixed."""
        return self._copy_count

    @property
    def min_copies(self) -> int:
        """The fewest copies that scaling limits or schedules allow; `copies` if a limit is known only at deployment."""
        fewest, _ = self._copy_range()
        return self.copies if fewest is None else fewest

    @property
    def max_copies(self) -> int:
        """The most copies that scaling limits or schedules allow; `copies` if a limit is known only at deployment."""
        _, most = self._copy_range()
        return self.copies if most is None else most

    def _copy_range(self) -> tuple[int | None, int | None]:
        if self._copy_count is None:
            return self.copies, self.copies
        return capacity_range(self._copy_count.scalable_target)

    def auto_scale_copies(self, *, min_capacity: int, max_capacity: int) -> ScalableCopyCount:
        """Scale the number of copies with the load. Each component of an endpoint scales independently.

        Args:
            min_capacity: the fewest copies, at least 1.
            max_capacity: the most copies.

        Returns:
            An object with methods that add scaling policies, such as `.scale_on_invocations(...)`.

        Raises:
            ConfigurationError: the limits contradict each other or the initial number of copies, or the component is
                scaled already.
        """
        if min_capacity == 0 and not isinstance(min_capacity, bool):
            raise ConfigurationError(
                f"min_capacity of {self._what} is 0, but target tracking does not start a first copy: call "
                "scale_to_zero(), which adds a policy and an alarm to start it"
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
        """Scale the number of copies with the load, down to zero, and start a copy when a request finds no copy.

        While there is no copy, requests fail, so callers must retry. A copy takes minutes to start if an instance has
        to start, too. The number of instances also goes to zero if `min_instance_count` is 0 and every component scales
        to zero.

        Args:
            id: the id of the target tracking policy.
            max_capacity: the most copies.
            max_requests_per_second: the most requests per second that one copy can serve, from a load test.
            safety_factor: the share of `max_requests_per_second` to aim at, above 0 and at most 1.
            scale_in_cooldown: the pause after copies were removed; 10 minutes by default.
            scale_out_cooldown: the pause after copies were added; 5 minutes by default.

        Returns:
            An object with methods that add further scaling policies.

        Raises:
            ConfigurationError: a number is out of its range, or the component is scaled already.
        """
        from cdk_triton.hosting.endpoints.scaling.tracking import check_invocations

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

    def roll_back_on(self, *alarms: cloudwatch.IAlarm | Iterable[cloudwatch.IAlarm]) -> None:
        """Make SageMaker roll back an update if an alarm goes off during the update.

        SageMaker watches the alarms while the deployment policy waits after each batch.

        Args:
            *alarms: alarms, or groups of alarms such as `monitoring.components["Text"].errors`; at most 10 together
                with the alarms of the deployment policy.

        Raises:
            ConfigurationError: the component has no deployment policy that waits; no alarm or more than 10 are given;
                or an alarm is composite, belongs to another account or region, or uses an attribute of the component or
                its endpoint (`Fn::GetAtt`).
        """
        self._updates.add_alarms(alarms_of("roll_back_on()", alarms))

    @checked
    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to invoke this component, and to read its parameter below `ssm_parameter_path`.

        The grant names the endpoint and this component as resources. A permission for InvokeEndpoint must name the
        endpoint, and can also name components. IAM has no condition key for components ("Actions, resources, and
        condition keys for Amazon SageMaker AI": `endpoint*` and `inference-component`).

        Args:
            grantee: the principal.
        """
        return self._endpoint._grant(grantee).combine(self._grant(grantee))

    def _grant(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to use this component, without its endpoint."""
        grant = iam.Grant.add_to_principal(
            grantee=grantee, actions=[*INVOKE_ACTIONS], resource_arns=[self.component_arn]
        )
        if self._parameter_path is not None:
            grant = grant.combine(allow_component_reading(self, grantee, self._parameter_path))
        return grant

    @property
    def _update_copies(self) -> int:
        """The number of new copies that an update starts at a time."""
        return batch_copies(Capacity(copies=1) if self._policy is None else self._policy.batch, self.copies)

    @property
    def _rollback_copies(self) -> int:
        """The number of old copies that a rollback starts at a time; 0 without a policy."""
        return 0 if self._policy is None else batch_copies(self._policy.rollback_batch or Capacity(100), self.copies)

    @property
    def _what(self) -> str:
        return f"component {self.node.id!r} of {self._endpoint.node.path}"

    def _scalable(self, min_capacity: int, max_capacity: int) -> ScalableCopyCount:
        from cdk_triton.hosting.endpoints.scaling.copy_count import ScalableCopyCount, check_copy_capacities

        if self._copy_count is not None:
            raise ConfigurationError(
                f"{self._what} is scaled already: add policies to the object that the first auto_scale_copies() or "
                "scale_to_zero() returned"
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
