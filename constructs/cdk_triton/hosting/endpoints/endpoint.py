"""`TritonEndpoint`: an endpoint with its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces.aws_sagemaker import EndpointReference
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import warn_about_key
from cdk_triton.hosting.endpoints.asynchronous.inference import AsyncInference, check_async
from cdk_triton.hosting.endpoints.asynchronous.storage import allow_async, async_storage
from cdk_triton.hosting.endpoints.callers import allow_caller
from cdk_triton.hosting.endpoints.config import endpoint_config
from cdk_triton.hosting.endpoints.data_capture import DataCapture, allow_capture, check_capture, warn_about_capture
from cdk_triton.hosting.endpoints.imported import ImportedEndpoint
from cdk_triton.hosting.endpoints.name_conflicts import UniqueNames
from cdk_triton.hosting.endpoints.parameters import check_parameters, parameter_names, put_parameters
from cdk_triton.hosting.endpoints.updates.rollback_alarms import alarms_of
from cdk_triton.hosting.endpoints.updates.settings import EndpointUpdates, check_deployment, require_name
from cdk_triton.hosting.endpoints.variants.capacity_reservations import check_reservations
from cdk_triton.hosting.endpoints.variants.endpoint_variant import EndpointVariant
from cdk_triton.hosting.endpoints.variants.metrics import VariantMetrics
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.endpoints.variants.variant_set import (
    check_environments,
    check_shadow,
    production_variants,
    warn_about_networks,
    warn_about_protocols,
    warn_about_shadow,
    warn_about_stacks,
    warn_about_storage,
    warn_about_target_models,
)
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.service_names import check_sagemaker_name
from cdk_triton.hosting.naming.stacks import is_of_another_account, stack_of

if TYPE_CHECKING:  # slow to import, and rarely needed
    from aws_cdk import aws_cloudwatch as cloudwatch
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sns as sns

    from cdk_triton.hosting.endpoints.monitoring.alarms import AlarmThresholds
    from cdk_triton.hosting.endpoints.monitoring.metrics_config import MetricsConfig
    from cdk_triton.hosting.endpoints.monitoring.monitoring import EndpointMonitoring
    from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount
    from cdk_triton.hosting.endpoints.updates.policies import DeploymentPolicy

__all__ = ["TritonEndpoint"]


@jsii.implements(sagemaker.IEndpoint)
class TritonEndpoint(Resource, VariantMetrics):
    """A SageMaker endpoint that runs Triton: a real-time endpoint, or with `asynchronous=` an asynchronous endpoint.

    Most changes create a new endpoint configuration, and CloudFormation updates the endpoint to it.

    `variant(name)` returns a variant with its metrics. If there is only one variant, the endpoint itself also has them.

    Args:
        scope: the stack or construct that the endpoint belongs to.
        id: the construct's id.
        model: the model to serve with one variant that has the default settings. Give either `model` or `variants`.
        variants: the production variants, if you need several variants or other settings.
        shadow: a variant that gets copies of requests, and whose responses are dropped. The share of requests that
            SageMaker copies is the shadow's weight, divided by the weight of the production variant. The endpoint must
            have exactly one production variant, and neither variant can be multi-model.
        endpoint_name: the name of the endpoint; by default, CloudFormation generates a name. If you give a name,
            CloudFormation cannot replace the endpoint while it keeps this name.
        encryption_key: the KMS key, in the endpoint's region, that encrypts the EBS volumes of the instances. The
            principal that deploys needs `kms:CreateGrant` on the key. Instance types with local disks have no such
            volumes. By default, SageMaker encrypts the volumes with a key that it creates for them and does not keep.
        deployment_policy: how an update reaches the instances: `AllAtOnce`, `Canary`, `Linear` or `Rolling`. By
            default, all requests move to the new instances as soon as these are in service.
        data_capture: which requests and responses SageMaker stores in S3.
        ssm_parameter_path: a path of the Parameter Store, such as `/search/production`. Callers find `endpoint-name`,
            `endpoint-arn`, `target-models/<ensemble>`, `async/input`, `async/output` and `async/failures` below it.
            Each parameter is one resource of the stack.
        metrics_config: the metrics that SageMaker publishes in addition to its standard metrics; by default SageMaker
            decides.
        asynchronous: makes the endpoint asynchronous: requests wait in a queue, and SageMaker stores the responses in
            S3. Such an endpoint serves one `TritonModel`, and does not accept InvokeEndpoint.

    Raises:
        ConfigurationError: an argument is not valid. By argument:

            * `model`, `variants`: both or neither are given; two variants have the same name; no variant has a weight;
              there are more variants than SageMaker accepts; a model is in another account or region; the variants have
              several capacity reservations, or one in another region or account.
            * `shadow`: SageMaker does not accept the shadow.
            * `endpoint_name`, `ssm_parameter_path`: the name is not valid; the parameters cannot be written; or another
              endpoint of the account and region has the name or the parameters.
            * `deployment_policy`: the policy does not fit the name or the variants.
            * `asynchronous`: the endpoint serves several models or a multi-model one, or has a shadow or data capture.
            * `encryption_key`, `data_capture`, `asynchronous`: a key, bucket or topic is in another region; or a key is
              asymmetric or an HMAC key.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model: ITritonModel | None = None,
        variants: Sequence[TritonVariant] | None = None,
        shadow: TritonVariant | None = None,
        endpoint_name: str | None = None,
        encryption_key: kms.IKey | None = None,
        deployment_policy: DeploymentPolicy | None = None,
        data_capture: DataCapture | None = None,
        ssm_parameter_path: str | None = None,
        metrics_config: MetricsConfig | None = None,
        asynchronous: AsyncInference | None = None,
    ) -> None:
        self._variants = production_variants(model, variants)
        self._shadow = shadow
        self._ssm_parameter_path = ssm_parameter_path
        if shadow is not None:
            check_shadow(shadow, self._variants)
        served = self._variants if shadow is None else (*self._variants, shadow)
        if endpoint_name is not None:
            check_sagemaker_name(endpoint_name, "endpoint_name")
        path = f"{path_of(scope)}/{id}"
        check_environments(scope, path, served, encryption_key)
        check_reservations(scope, path, {each.variant_name: each.capacity_reservation_arn for each in served})
        if data_capture is not None:
            check_capture(scope, path, data_capture)
        captures, is_async = data_capture is not None, asynchronous is not None
        check_async(scope, path, asynchronous, self._variants, shadow=shadow, captures=captures)
        check_deployment(deployment_policy, self._variants, endpoint_name, path)
        if ssm_parameter_path is not None:
            check_parameters(ssm_parameter_path, self._variants)
        in_store = parameter_names(ssm_parameter_path, self._variants, is_async=is_async)
        names = UniqueNames(endpoint_name, in_store)
        names.check(scope, path)
        super().__init__(scope, id, physical_name=endpoint_name)
        warn_about_shadow(self, shadow)
        warn_about_stacks(self, served)
        warn_about_storage(self, served, encryption_key)
        if encryption_key is not None and is_of_another_account(encryption_key, stack_of(self).account):
            warn_about_key(self, encryption_key, "the deploying role to create grants for SageMaker (kms:CreateGrant)")
        warn_about_networks(self, served)
        warn_about_protocols(self, served)
        warn_about_target_models(self, self._variants)
        if metrics_config is not None:
            metrics_config._warn(self)
        self._storage = async_storage(self, asynchronous)
        self._config = endpoint_config(
            self,
            variants=self._variants,
            shadow=shadow,
            encryption_key=encryption_key,
            metrics_config=metrics_config,
            data_capture=data_capture,
            storage=self._storage,
        )
        self._endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_config_name=self._config.attr_endpoint_config_name,
            endpoint_name=self._physical_name if endpoint_name is not None else None,
        )
        names.take(self)
        # SageMaker uses a model's role until the endpoint is gone, so its policy must go after the endpoint.
        for variant in served:
            self._endpoint.node.add_dependency(*variant.models)
        self._updates = EndpointUpdates(
            self,
            self._endpoint,
            self._config,
            self._variants,
            deployment_policy,
            served,
            captures=captures,
        )
        self._in_service = {
            v.variant_name: EndpointVariant(
                self, self._endpoint, v, self._updates.keep_instance_counts, is_async=is_async
            )
            for v in served
        }
        if data_capture is not None:
            allow_capture(self, data_capture, self._endpoint, served)
            warn_about_capture(self, data_capture, served)
        allow_async(self, self._storage, self._endpoint, served)
        if ssm_parameter_path is not None:
            own = (self.endpoint_name, self.endpoint_arn)
            locations = {} if self._storage is None else self._storage.locations
            put_parameters(self, ssm_parameter_path, self._endpoint, own, self._variants, locations)

    @staticmethod
    @checked
    def from_endpoint_name(scope: Construct, id: str, endpoint_name: str) -> ImportedEndpoint:
        """Import an endpoint that exists in the scope's account and region, by its name.

        If the name contains an unresolved token, grants work only if the resolved name has no capital letters. If it
        may have capital letters, use `from_endpoint_attributes`.

        Raises:
            ConfigurationError: the name is not a valid endpoint name.
        """
        return ImportedEndpoint(scope, id, endpoint_name=endpoint_name)

    @staticmethod
    @checked
    def from_endpoint_arn(scope: Construct, id: str, endpoint_arn: str) -> ImportedEndpoint:
        """Import an endpoint that exists, by its ARN.

        The endpoint gets the name in the ARN, which SageMaker writes in lower case. If the name contains capital
        letters, use `from_endpoint_attributes`, because callers must use the name with these letters.

        Raises:
            ConfigurationError: the ARN is not the ARN of an endpoint.
        """
        return ImportedEndpoint._from_arn(scope, id, endpoint_arn)

    @staticmethod
    @checked
    def from_endpoint_attributes(
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        endpoint_arn: str,
    ) -> ImportedEndpoint:
        """Import an endpoint that exists, by the name that callers use and the ARN that IAM policies use.

        Raises:
            ConfigurationError: the name is not valid, or the ARN is not an endpoint's or names another endpoint.
        """
        return ImportedEndpoint(scope, id, endpoint_name=endpoint_name, endpoint_arn=endpoint_arn)

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
    def endpoint_config_name(self) -> str:
        """The name of the endpoint configuration, for metrics of the new instances (dimension `EndpointConfigName`)."""
        return self._config.attr_endpoint_config_name

    @property
    @jsii.member(jsii_name="endpointRef")
    def endpoint_ref(self) -> EndpointReference:
        """The reference that L1 constructs accept."""
        return self._endpoint.endpoint_ref

    @property
    def variants(self) -> tuple[TritonVariant, ...]:
        """The production variants."""
        return self._variants

    @property
    def shadow(self) -> TritonVariant | None:
        """The shadow variant, or None."""
        return self._shadow

    @property
    def async_bucket(self) -> s3.IBucket | None:
        """The bucket of an asynchronous endpoint, your own or the endpoint's; None for a real-time endpoint."""
        return None if self._storage is None else self._storage.bucket

    @checked
    def variant(self, variant_name: str | None = None) -> EndpointVariant:
        """Return a variant, with its metrics and its scaling.

        Args:
            variant_name: the name of a production variant or of the shadow. By default, the only production variant.

        Raises:
            ConfigurationError: the variant does not exist, or there are several and you did not name one.
        """
        known = ", ".join(map(repr, self._in_service))
        if variant_name is None:
            if len(self._variants) > 1:
                raise ConfigurationError(
                    f"{self.node.path} has several variants: name one of {known}, as endpoint.variant(name)"
                )
            variant_name = self._variants[0].variant_name
        if variant_name not in self._in_service:
            raise ConfigurationError(f"{self.node.path} has no variant {variant_name!r}: use one of {known}")
        return self._in_service[variant_name]

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The metric dimensions of the only production variant.

        Raises:
            ConfigurationError: the endpoint has several production variants.
        """
        return self.variant().metric_dimensions

    def auto_scale_instance_count(self, *, min_capacity: int, max_capacity: int) -> ScalableInstanceCount:
        """Let the number of instances follow the load. The endpoint must have only one variant.

        Args:
            min_capacity: the smallest number of instances: 1 or more, or 0 or more for an asynchronous endpoint.
            max_capacity: the largest number of instances.

        Returns:
            An object with methods that add scaling policies, such as `.scale_on_invocations(...)`.

        Raises:
            ConfigurationError: there are several variants, the limits contradict each other or the initial count, or
                the variant already scales.
        """
        return self.variant().auto_scale_instance_count(min_capacity=min_capacity, max_capacity=max_capacity)

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
        """Add a dashboard, alarms for each production variant, and a retention period for the containers' logs.

        Args:
            topic: the SNS topic that every alarm notifies. CloudWatch gets permission to publish to it and to use its
                KMS key. Without a topic, only the dashboard shows the alarms.
            thresholds: the thresholds of the alarms, if you do not want the defaults.
            log_retention: how long CloudWatch keeps the logs. `INFINITE` sets no period.
            runbook_url: the address of your own runbook, or of your copy of this guide's runbook. Each alarm links to
                this address, followed by `#` and the alarm's name in lower case. The default is the context value
                `cdk-triton:runbookUrl`. Without an address, each alarm contains the first step to take.
            dashboard_name: the name of the dashboard: up to 255 letters, digits, `-` and `_`. It must be unique in the
                account, in all regions. By default CloudFormation generates one.

        Returns:
            The dashboard and the alarms. You can add other actions to the alarms, and pass them to `roll_back_on`.

        Raises:
            ConfigurationError: the endpoint already has monitoring; the topic is known to be in another region;
                the runbook's address is empty, has a fragment or is too long; or CloudWatch rejects the name of the
                dashboard.
        """
        from cdk_triton.hosting.endpoints.monitoring.watched_variant import monitor_variants

        return monitor_variants(
            self,
            self.endpoint_name,
            [self._in_service[each.variant_name] for each in self._variants],
            None if self._shadow is None else self._in_service[self._shadow.variant_name],
            topic=topic,
            thresholds=thresholds,
            log_retention=log_retention,
            runbook_url=runbook_url,
            dashboard_name=dashboard_name,
        )

    def roll_back_on(self, *alarms: cloudwatch.IAlarm | Iterable[cloudwatch.IAlarm]) -> None:
        """Make SageMaker roll back an update if an alarm goes off during the update.

        SageMaker watches the alarms while the deployment policy waits. If an alarm is in the state ALARM when the
        update begins, the update stops at once.

        Args:
            *alarms: alarms, or groups of alarms such as `errors` and `latency` of the result of `monitor`; at most 10
                together with the alarms of the deployment policy.

        Raises:
            ConfigurationError: the endpoint has no deployment policy that waits; `endpoint_name` is not given as
                literal text; no alarm is given, or more than SageMaker watches; or an alarm is composite, belongs to
                another account or region, or uses an attribute of the endpoint (`Fn::GetAtt`).
        """
        self._updates.add_alarms(alarms_of("roll_back_on()", alarms))

    @checked
    def add_rollback_notification(self, topic: sns.ITopic | None = None) -> sns.ITopic:
        """Send a message when an update was rolled back or has failed.

        A deployment may report such an update as a success. The message comes from an EventBridge rule, which
        CloudFormation creates before an update begins.

        Args:
            topic: the SNS topic for the messages; by default a new topic with a new KMS key. EventBridge needs
                permission to use the key of an encrypted topic; CDK adds this permission for topics and keys of the
                app.

        Returns:
            The topic, to which you subscribe.

        Raises:
            ConfigurationError: `endpoint_name` is not literal text, or the topic is in another account or region.
        """
        from cdk_triton.hosting.endpoints.updates.rollback_notice import add_rollback_notification

        name = require_name(self._endpoint.endpoint_name, self.node.path, "notices of rollbacks")
        return add_rollback_notification(self, self._endpoint, self._config, name, topic)

    @jsii.member(jsii_name="grantInvoke")
    @checked
    def grant_invoke(
        self,
        grantee: iam.IGrantable,
        *,
        target_models: Sequence[str] | None = None,
        published: Sequence[str] | None = None,
    ) -> iam.Grant:
        """Allow a principal to invoke the endpoint, and to read its parameters below `ssm_parameter_path`.

        For an asynchronous endpoint, this includes the access to requests and results in S3.

        Args:
            grantee: the principal.
            target_models: the ensembles of a multi-model endpoint that the principal can call, in every version. By
                default, all ensembles, or none if you give `published`.
            published: patterns of the published ensembles that the principal can call, such as `tenant-*`. By default,
                all published ensembles, or none if you give `target_models`.

        Raises:
            ConfigurationError: a list is empty, a pattern is not valid, or no variant serves such an ensemble.
        """
        return allow_caller(
            self,
            grantee,
            self.endpoint_arn,
            variants=self._variants,
            storage=self._storage,
            parameter_path=self._ssm_parameter_path,
            target_models=target_models,
            published=published,
        )
