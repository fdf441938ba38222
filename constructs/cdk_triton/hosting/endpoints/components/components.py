"""`TritonComponents`: an endpoint without a model, and the inference components on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jsii
from aws_cdk import Annotations, Aspects, Resource, Size
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import has_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import key_arn_for_service, warn_about_key
from cdk_triton.hosting.access.trust import sagemaker_inference
from cdk_triton.hosting.endpoints.components.capacity import CapacityWarnings, check_capacity
from cdk_triton.hosting.endpoints.components.component import TritonComponent
from cdk_triton.hosting.endpoints.components.instances import (
    VARIANT_NAME,
    initial_count,
    variant_of_components,
    warn_about_zero,
)
from cdk_triton.hosting.endpoints.components.limits import check_id, check_numbers, count_component
from cdk_triton.hosting.endpoints.components.requirements import check_count, copy_requirements, memory_doubt
from cdk_triton.hosting.endpoints.components.shared_network import SharedNetwork
from cdk_triton.hosting.endpoints.components.updates import check_policy
from cdk_triton.hosting.endpoints.invoke_grants import allow_invocation
from cdk_triton.hosting.endpoints.name_conflicts import UniqueNames
from cdk_triton.hosting.endpoints.parameters import (
    allow_reading,
    check_component_id,
    check_parameters,
    parameter_names,
    put_parameters,
)
from cdk_triton.hosting.endpoints.updates.policies import Rolling
from cdk_triton.hosting.endpoints.variants.capacity_reservations import check_reservation, check_reservations
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.endpoints.variants.variant_set import (
    acknowledge_local_disks,
    check_environments,
    warn_about_stacks,
    warn_about_storage,
)
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.models.max_payload import check_real_time_payload
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.service_names import check_sagemaker_name, role_description
from cdk_triton.hosting.naming.stacks import is_of_another_account, stack_of
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.platform import platform_of

if TYPE_CHECKING:  # slow to import, and rarely needed
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sns as sns

    from cdk_triton.hosting.endpoints.monitoring.alarms import AlarmThresholds
    from cdk_triton.hosting.endpoints.monitoring.metrics_config import MetricsConfig
    from cdk_triton.hosting.endpoints.monitoring.monitoring import EndpointMonitoring

__all__ = ["TritonComponents"]

NO_COPY_WARNING: Final = "cdk-triton:NoInitialCopy"
MEMORY_WARNING: Final = "cdk-triton:ComponentMemory"


@jsii.implements(sagemaker.IEndpoint)
class TritonComponents(Resource):
    """A real-time endpoint that hosts inference components. Each component runs copies of one `TritonModel`.

    Each copy has whole GPUs to itself. Use components if an instance has several GPUs and each ensemble must scale
    independently, or if copies and instances should scale to zero. For many ensembles on one GPU, use a
    `TritonMultiModel` on a `TritonEndpoint`. You cannot combine components with a `TritonMultiModel`, asynchronous
    inference or instance pools.

    SageMaker scales the number of instances between `min_instance_count` and `max_instance_count`, as the copies
    require.

    Attributes:
        platform: the release, instance type and host AMI that serve the components.
        role: the role of the endpoint configuration. It can read the archives, as the models' own roles can, because
            AWS does not document which of these roles SageMaker uses.

    Args:
        scope: the stack or construct that the endpoint belongs to.
        id: the construct's id.
        platform: the release, instance type and host AMI of the endpoint, or the short form "25.09/ml.g5.2xlarge".
            Every model must have the same platform.
        min_instance_count: the fewest instances. With 0, SageMaker removes the last instance when no component has a
            copy; some regions reject 0.
        max_instance_count: the most instances. An update of a component needs free GPUs, or one more instance.
        initial_instance_count: the number of instances that the endpoint starts with; by default `min_instance_count`,
            but at least 1.
        endpoint_name: the name of the endpoint; by default, CloudFormation generates a name.
        encryption_key: a KMS key of the endpoint's region that encrypts the EBS volumes of the instances. Instance
            types with local disks have no such volume.
        metrics_config: the metrics that SageMaker publishes in addition to its standard metrics; by default SageMaker
            decides.
        ssm_parameter_path: a path of the Parameter Store, such as `/search/production`, below which callers find
            `endpoint-name`, `endpoint-arn` and `components/<id>`. Each parameter is one resource of the stack.
        capacity_reservation_arn: the ARN of a training plan or an ML reservation, in which all instances start.

    Raises:
        ConfigurationError: the instance counts contradict each other, or the key is in another region; the name or the
            path is not valid, or belongs to another endpoint of the account and region; the reservation is not valid,
            or is in another region or account.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: ServingPlatform | str,
        max_instance_count: int,
        min_instance_count: int = 1,
        initial_instance_count: int | None = None,
        endpoint_name: str | None = None,
        encryption_key: kms.IKey | None = None,
        metrics_config: MetricsConfig | None = None,
        ssm_parameter_path: str | None = None,
        capacity_reservation_arn: str | None = None,
    ) -> None:
        path, platform = f"{path_of(scope)}/{id}", platform_of(platform)
        initial = initial_count(path, min_instance_count, max_instance_count, initial_instance_count)
        if endpoint_name is not None:
            check_sagemaker_name(endpoint_name, "endpoint_name")
        check_environments(scope, path, [], encryption_key)
        if capacity_reservation_arn is not None:
            check_reservation(f"capacity_reservation_arn of {path}", capacity_reservation_arn)
        check_reservations(scope, path, {VARIANT_NAME: capacity_reservation_arn})
        if ssm_parameter_path is not None:
            check_parameters(ssm_parameter_path, [])
        names = UniqueNames(endpoint_name, parameter_names(ssm_parameter_path, []))
        names.check(scope, path)
        super().__init__(scope, id, physical_name=endpoint_name)
        self.platform = platform
        self._max_instance_count = max_instance_count
        self._given_name = endpoint_name
        self._parameter_path = ssm_parameter_path
        self._encryption_key = encryption_key
        self.role: iam.IRole = iam.Role(
            self,
            "Role",
            assumed_by=sagemaker_inference(self),
            description=role_description(f"cdk-triton: what the instances of {path_of(self)} may do"),
        )
        self._config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            execution_role_arn=self.role.role_arn,
            production_variants=[
                variant_of_components(
                    platform, initial, min_instance_count, max_instance_count, capacity_reservation_arn
                )
            ],
            kms_key_id=None if encryption_key is None else key_arn_for_service(encryption_key),
            metrics_config=None if metrics_config is None else metrics_config._rendered(),
        )
        self._endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_config_name=self._config.attr_endpoint_config_name,
            endpoint_name=self._physical_name if endpoint_name is not None else None,
        )
        names.take(self)
        if min_instance_count == 0:
            warn_about_zero(self)
        if encryption_key is not None and is_of_another_account(encryption_key, stack_of(self).account):
            warn_about_key(self, encryption_key, "the deploying role to create grants for SageMaker (kms:CreateGrant)")
        if metrics_config is not None:
            metrics_config._warn(self)
        self._network = SharedNetwork(self, self._config)
        self._children = Construct(self, "Components")
        self._components: list[TritonComponent] = []
        self._callers: list[iam.IGrantable] = []
        self._monitoring: EndpointMonitoring | None = None
        if ssm_parameter_path is not None:
            own = (self.endpoint_name, self.endpoint_arn)
            put_parameters(self, ssm_parameter_path, self._endpoint, own, [])
        counts = initial, min_instance_count, max_instance_count
        Aspects.of(self._config).add(CapacityWarnings(self, platform.instance, counts, self._components))

    @checked
    def add_component(
        self,
        id: str,
        *,
        model: ITritonModel,
        accelerators: int,
        memory: Size,
        cpus: float | None = None,
        copies: int = 1,
        deployment_policy: Rolling | None = None,
    ) -> TritonComponent:
        """Add a component.

        Args:
            id: the construct's id, without `/`. The component's name is generated: see `component_name`.
            model: a single model, such as a `TritonModel`, with the endpoint's platform.
            accelerators: the number of whole GPUs that one copy gets, at least 1.
            memory: the host memory that one copy reserves, at least 128 MiB and in whole MiB. A copy can use more.
            cpus: the number of vCPUs that one copy reserves, at least 0.25; by default none.
            copies: the number of copies that the component starts with. Do not change this number once the copies
                scale, because a change overwrites the number that scaling has set.
            deployment_policy: how an update replaces the copies, batch by batch. By default SageMaker decides.

        Returns:
            The component, with its name, metrics, scaling and grants.

        Raises:
            ConfigurationError: a copy needs more than one instance has, or the first copies of all components need more
                than `max_instance_count` instances have; the model is a multi-model model, or has another platform or
                network; the deployment policy counts instances; the endpoint or the model has too many components; `id`
                is empty, taken, a token or contains `/`; or a number is out of its range.
        """
        check_id(id, self.node.path)
        what = f"component {quoted(id)} of {self.node.path}"
        check_numbers(self._children, id, what, model)
        self._check_model(what, model)
        check_real_time_payload(what, model)
        requirements = copy_requirements(what, self.platform.instance, accelerators, memory, cpus)
        check_count(f"copies of {what}", copies, 0, "and at least 1 when SageMaker creates the component")
        wanted = [*((each.requirements, each.copies) for each in self._components), (requirements, copies)]
        check_capacity(what, wanted, self.platform, self._max_instance_count)
        check_policy(what, deployment_policy)
        if self._parameter_path is not None:
            check_component_id(id)
        self._network.check(model)
        served = [TritonVariant(model=model)]
        check_environments(self, self.node.path, served, None)
        component = TritonComponent(
            self._children,
            id,
            endpoint=self,
            endpoint_resource=self._endpoint,
            role=self.role,
            model=model,
            requirements=requirements,
            copies=copies,
            given_name=self._given_name,
            variant_name=VARIANT_NAME,
            deployment_policy=deployment_policy,
            ssm_parameter_path=self._parameter_path,
        )
        self._network.take(model)
        count_component(model, component.node.path)
        warn_about_stacks(self, served)
        if not self._components:
            warn_about_storage(self, served, self._encryption_key)
            acknowledge_local_disks(self._config, served)
        self._warn_about(component, what)
        self._components.append(component)
        for caller in self._callers:
            component._grant(caller)
        if self._monitoring is not None:
            from cdk_triton.hosting.endpoints.components.watched_component import watch_component

            watch_component(self._monitoring, component)
        return component

    @property
    def components(self) -> tuple[TritonComponent, ...]:
        """The components, in the order in which they were added."""
        return tuple(self._components)

    @property
    @jsii.member(jsii_name="endpointName")
    def endpoint_name(self) -> str:
        """The endpoint's name, for `EndpointName` of InvokeEndpoint."""
        return self._get_resource_name_attribute(self._endpoint.attr_endpoint_name)

    @property
    @jsii.member(jsii_name="endpointArn")
    def endpoint_arn(self) -> str:
        """The endpoint's ARN, in which SageMaker writes the endpoint's name in lower case."""
        name = self._physical_name if has_token(self._physical_name) else self._physical_name.lower()
        return self._get_resource_arn_attribute(
            self._endpoint.ref, service="sagemaker", resource="endpoint", resource_name=name
        )

    @property
    @jsii.member(jsii_name="endpointRef")
    def endpoint_ref(self) -> EndpointReference:
        """The reference that L1 constructs accept."""
        return self._endpoint.endpoint_ref

    @jsii.member(jsii_name="grantInvoke")
    @checked
    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to invoke every component, and to read the parameters below `ssm_parameter_path`, if set.

        The grant includes components that are added later, and their parameters. For one component only, use
        `TritonComponent.grant_invoke`.

        Args:
            grantee: the principal.
        """
        grant = self._grant(grantee)
        self._callers.append(grantee)
        for component in self._components:
            grant = grant.combine(component._grant(grantee))
        return grant

    def _grant(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to use the endpoint, without its components."""
        grant = allow_invocation(self, grantee, self.endpoint_arn, None, lambda _: None)
        if self._parameter_path is not None:
            grant = grant.combine(allow_reading(self, grantee, self._parameter_path, [], None))
        return grant

    @checked
    def monitor(
        self,
        *,
        topic: sns.ITopic | None = None,
        thresholds: AlarmThresholds | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        runbook_url: str | None = None,
        dashboard_name: str | None = None,
    ) -> EndpointMonitoring:
        """Add a dashboard, alarms for each component, and a retention period for the components' logs.

        Components that are added later get alarms, too. You can scale a component before or after this call.

        Args:
            topic: the SNS topic that every alarm notifies. CloudWatch gets permission to publish to it and to use its
                KMS key. Without a topic, only the dashboard shows the alarms.
            thresholds: the thresholds of the alarms, if you do not want the defaults.
            log_retention: how long CloudWatch keeps the logs. `INFINITE` does not change the retention of the log
                groups.
            runbook_url: the address of your own runbook, or of your copy of this guide's runbook. Each alarm links to
                this address, followed by `#` and the alarm's name in lower case. The default is the context value
                `cdk-triton:runbookUrl`. Without an address, each alarm contains the first step to take.
            dashboard_name: the name of the dashboard: up to 255 letters, digits, `-` and `_`. It must be unique in the
                account, in all regions. By default CloudFormation generates one.

        Returns:
            The dashboard and the alarms. You can add other actions to the alarms, and pass the alarms to
            `TritonComponent.roll_back_on`.

        Raises:
            ConfigurationError: the endpoint is monitored already; the topic is known to be in another region;
                the runbook's address is empty, has a fragment or is too long; or CloudWatch rejects the name of the
                dashboard.
        """
        from cdk_triton.hosting.endpoints.components.watched_component import watch_component
        from cdk_triton.hosting.endpoints.monitoring.log_retention import component_log_group_name
        from cdk_triton.hosting.endpoints.monitoring.monitoring import ID, EndpointMonitoring, check_not_monitored

        check_not_monitored(self)
        self._monitoring = EndpointMonitoring(
            self,
            ID,
            endpoint_name=self.endpoint_name,
            log_group=component_log_group_name("<component>"),
            topic=topic,
            thresholds=thresholds,
            log_retention=log_retention,
            runbook_url=runbook_url,
            dashboard_name=dashboard_name,
        )
        for each in self._components:
            watch_component(self._monitoring, each)
        return self._monitoring

    def _check_model(self, what: str, model: ITritonModel) -> None:
        if model.is_multi_model:
            raise ConfigurationError(
                f"the model of {what} is a TritonMultiModel, but a component has one archive, and a request names a "
                "component or a target model, not both: give each ensemble a TritonModel and a component of its own, "
                "or serve the TritonMultiModel on a TritonEndpoint"
            )
        if model.platform != self.platform:
            raise ConfigurationError(
                f"the model of {what} is made for {_described(model.platform)}, but the instances are "
                f"{_described(self.platform)}: give both the same ServingPlatform"
            )

    def _warn_about(self, component: TritonComponent, what: str) -> None:
        if component.copies == 0:
            Annotations.of(component).add_warning_v2(
                NO_COPY_WARNING,
                f"{what} starts with 0 copies, but SageMaker rejects the creation of such a component ('Inference "
                "components copy count an integer larger than 0', as stdapi-ai/stdapi.ai#43 reports): start with 1 "
                "copy and call scale_to_zero(), or acknowledge this if the component already exists",
            )
        if (doubt := memory_doubt(component.requirements, self.platform.instance)) is not None:
            Annotations.of(component).add_warning_v2(MEMORY_WARNING, f"a copy of {what} {doubt}")


def _described(platform: ServingPlatform) -> str:
    host = f" with the host AMI {platform.inference_ami_version}" if platform.inference_ami_version else ""
    return f"{platform.image_identity} on {platform.instance_type}{host}"
