"""The settings of an endpoint's updates: policy, rollback alarms, and properties that an update keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aws_cdk import Annotations, Aspects
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.network import network_of
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.endpoints.data_capture import warn_about_scaling
from cdk_triton.hosting.endpoints.model_role_policies import allow_models
from cdk_triton.hosting.endpoints.updates.rollback_alarms import check_rollback_alarm, warn_about_stack
from cdk_triton.hosting.endpoints.variants.state import stateful_models
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.delivery import delivering_store
from cdk_triton.hosting.naming.per_construct import path_of

if TYPE_CHECKING:  # slow to import, and only needed with policies, alarms or scaling
    from aws_cdk import aws_cloudwatch as cloudwatch

    from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount
    from cdk_triton.hosting.endpoints.scaling.wait import EndpointWait
    from cdk_triton.hosting.endpoints.updates.policies import DeploymentPolicy

__all__ = ["EndpointUpdates", "check_deployment", "require_name"]

NO_WAIT_WARNING = "cdk-triton:NoEndpointWait"

RETAIN = "cdk-triton:retainVariantProperties"
"""The context value. With `false`, an update sets the counts of scaled variants from the template."""


def check_deployment(
    policy: DeploymentPolicy | None, variants: Sequence[TritonVariant], endpoint_name: str | None, path: str
) -> None:
    """Reject a policy that does not fit the endpoint.

    Raises:
        ConfigurationError: the policy does not fit the endpoint.
    """
    if policy is None:
        return
    if policy._is_for_one_variant and len(variants) > 1:
        raise ConfigurationError(
            f"{path} has {len(variants)} variants and the deployment policy {type(policy).__name__}, which "
            "SageMaker offers to endpoints with one variant only: use Canary, Linear or AllAtOnce"
        )
    for name, part in policy._parts.items():
        if part.copies is not None:
            raise ConfigurationError(
                f"{name} of the deployment policy of {path} is {part}, but SageMaker updates an endpoint by instances: "
                "give Capacity a percentage or instances="
            )
    if policy.alarms:
        require_name(endpoint_name, path, "rollback alarms")


def require_name(endpoint_name: str | None, path: str, what: str) -> str:
    """The endpoint's name, for resources that need it before the endpoint exists.

    An alarm names the endpoint in its dimensions, and the endpoint names the alarm in its deployment configuration.
    With a generated name, each would have to be created before the other. The CDK synthesises that cycle without an
    error, and CloudFormation rejects it.

    Raises:
        ConfigurationError: the app does not give the endpoint a name, or gives a name with an unresolved token.
    """
    if endpoint_name is None or has_token(endpoint_name):
        raise ConfigurationError(
            f"{path} has {what} but no literal endpoint_name, and with a generated name the {what} and the endpoint "
            "would depend on each other, which CloudFormation rejects as a circular dependency: give endpoint_name="
        )
    return endpoint_name


class EndpointUpdates:
    """The part of an endpoint's L1 that sets how it is updated.

    Args:
        scope: the endpoint.
        endpoint: the endpoint's L1 construct.
        config: the L1 construct of the endpoint's configuration.
        variants: the endpoint's production variants.
        policy: how SageMaker updates the endpoint. None: SageMaker decides.
        served: the endpoint's variants and the shadow. An update also keeps or sets the shadow's instances.
        captures: whether the endpoint captures data.
    """

    def __init__(
        self,
        scope: Construct,
        endpoint: sagemaker.CfnEndpoint,
        config: sagemaker.CfnEndpointConfig,
        variants: Sequence[TritonVariant],
        policy: DeploymentPolicy | None,
        served: Sequence[TritonVariant],
        *,
        captures: bool,
    ) -> None:
        self._scope = scope
        self._captures = captures
        self._endpoint = endpoint
        self._config = config
        self._wait: EndpointWait | None = None
        self._variants = variants
        self._served = served
        self._policy = policy
        self._alarms: list[cloudwatch.IAlarm] = []
        self._scaled: dict[str, ScalableInstanceCount] = {}
        if policy is not None or len(served) > 1 or any(stateful_models(each.model) for each in variants):
            from cdk_triton.hosting.endpoints.updates.warnings import UpdateWarnings

            Aspects.of(endpoint).add(UpdateWarnings(scope, variants, policy, self._alarms, self._scaled, served))
        if policy is not None:
            self._render(policy)
            if policy.alarms:
                self.add_alarms(policy.alarms)

    def add_alarms(self, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Let alarms roll an update back.

        Raises:
            ConfigurationError: there is no policy with a wait in which SageMaker watches them, or no literal endpoint
                name; there is no alarm, or too many; or an alarm is composite, belongs to another account or region, or
                uses an attribute of the endpoint.
        """
        path = self._scope.node.path
        if self._policy is None:
            raise ConfigurationError(
                f"{path} has rollback alarms and no deployment policy, so SageMaker ends the old instances before "
                "any alarm can go off: pass a policy that waits, such as "
                "deployment_policy=AllAtOnce(termination_wait=…)"
            )
        if not alarms:
            raise ConfigurationError(f"roll_back_on() of {path} has no alarm: pass one, or remove the call")
        require_name(self._endpoint.endpoint_name, path, "rollback alarms")
        known = {alarm.node.path for alarm in self._alarms}
        new = list({alarm.node.path: alarm for alarm in alarms if alarm.node.path not in known}.values())
        self._policy._check_alarms([*self._alarms, *new])
        fix = "take a metric of endpoint.metric_…() or write the endpoint's name into the dimension"
        for alarm in new:
            check_rollback_alarm(self._scope, alarm, {"endpoint": self._endpoint}, fix)
        if not new:
            return
        for alarm in new:
            warn_about_stack(self._scope, alarm)
        self._alarms += new
        self._render(self._policy)
        # "Ensure that your IAM execution role has permission to perform the cloudwatch:DescribeAlarms action on the
        # auto-rollback alarms you specify" ("Auto-Rollback Configuration and Monitoring").
        # Changed in place, because the new list exists before an update begins, and a rollback restores the old one
        # first.
        statement = Statement(actions=["cloudwatch:DescribeAlarms"], resources=[alarm.alarm_arn for alarm in new])
        allow_models(self._scope, "RollbackAlarms", self._endpoint, self._variants, [statement])

    def keep_instance_counts(self, variant_name: str, scaling: ScalableInstanceCount) -> None:
        """Let updates keep the instance counts that scaling has set, and still set the weights of the template.

        Without `RetainAllVariantProperties`, an update sets every variant back to its initial count
        (aws/aws-cdk#23151). The property would also keep the weights, and a changed weight would have no effect, so the
        weights are excluded. If SageMaker rejects the property when an endpoint is created, the context value
        `cdk-triton:retainVariantProperties=false` omits it: CloudFormation's reference has the sentence "use this
        property only when updating endpoint resources".

        Args:
            variant_name: the variant that is scaled.
            scaling: the scaling limits and policies of the variant.

        Raises:
            ConfigurationError: the context value is neither true nor false.
        """
        self._scaled[variant_name] = scaling
        self._wait_for(scaling)
        if not _context_says_retain(self._scope):
            return
        if self._captures:
            warn_about_scaling(self._scope)
        self._endpoint.retain_all_variant_properties = True
        self._endpoint.exclude_retained_variant_properties = [
            sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type="DesiredWeight")
        ]

    def _wait_for(self, scaling: ScalableInstanceCount) -> None:
        """Let deployments wait while scaling adds or removes instances.

        The handler of a model's store does it, so endpoints that only serve imported models, or models of a user's own
        class, do not wait.
        """
        if self._wait is None:
            stores = (delivering_store(model) for variant in self._served for model in variant.models)
            store = next((each for each in stores if each is not None), None)
            if store is None:
                Annotations.of(self._scope).add_warning_v2(
                    NO_WAIT_WARNING,
                    f"{path_of(self._scope)} is scaled, but no artifact store of this app delivers its models. So "
                    "deployments do not wait while the number of instances changes, and SageMaker rejects an update "
                    "then. Before each deployment, suspend scaling with `aws application-autoscaling "
                    "register-scalable-target --suspended-state`, and wait with `aws sagemaker wait "
                    "endpoint-in-service`. Then acknowledge this",
                )
                return
            from cdk_triton.hosting.endpoints.scaling.wait import EndpointWait

            self._wait = EndpointWait(
                self._scope,
                "Wait",
                endpoint=self._endpoint,
                config=self._config,
                service_token=store.service_token,
                network=network_of(store),
            )
            self._tell_wait()
        # The wait before the deletion begins only when nothing scales any more.
        scaling.scalable_target.node.add_dependency(self._wait.deletion)

    def _tell_wait(self) -> None:
        deployment = self._endpoint.deployment_config
        if self._wait is not None and isinstance(deployment, sagemaker.CfnEndpoint.DeploymentConfigProperty):
            self._wait.set_deployment(deployment)

    def _render(self, policy: DeploymentPolicy) -> None:
        rollback = None
        if self._alarms:
            rollback = sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
                alarms=[sagemaker.CfnEndpoint.AlarmProperty(alarm_name=alarm.alarm_name) for alarm in self._alarms]
            )
        self._endpoint.deployment_config = policy._rendered(rollback)
        self._tell_wait()


def _context_says_retain(scope: Construct) -> bool:
    value = scope.node.try_get_context(RETAIN)
    if value is None or value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise ConfigurationError(f"the context value {RETAIN} is {value!r}: use true or false")
