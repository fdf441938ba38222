"""How SageMaker updates a component to a new model: a `Rolling` policy, and the alarms that roll an update back.

Sources: the shapes below `InferenceComponentDeploymentConfig` in the service model `sagemaker` 2017-07-24 of botocore
1.44.5, and AWS's sample `03-features/deployment/ic_rolling_deployment.ipynb` in
aws-samples/sagemaker-genai-hosting-examples. UpdateInferenceComponent accepts only a rolling policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Annotations, Aspects, IAspect
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.endpoints.updates.policies import Capacity, Rolling
from cdk_triton.hosting.endpoints.updates.rollback_alarms import check_rollback_alarm, warn_about_stack
from cdk_triton.hosting.endpoints.updates.warnings import warn_about_alarms, warn_about_step
from cdk_triton.hosting.naming.literals import is_token

if TYPE_CHECKING:  # slow to import, and only needed with alarms
    from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["ComponentUpdates", "batch_copies", "check_policy"]

_L1 = sagemaker.CfnInferenceComponent


def check_policy(what: str, policy: Rolling | None) -> None:
    """Reject a policy that counts instances.

    Raises:
        ConfigurationError: the policy gives a number of instances.
    """
    for name, part in ({} if policy is None else policy._parts).items():
        if part.instances is not None:
            raise ConfigurationError(
                f"{name} of the deployment policy of {what} is {part}, but SageMaker updates a component by copies: "
                "give Capacity a percentage or copies="
            )


def batch_copies(part: Capacity, copies: int) -> int:
    """The number that a `Capacity` means for a component with so many copies; 1 if it is known only at deployment."""
    if part.percent is not None and not is_token(part.percent):
        return math.ceil(copies * part.percent / 100)
    return min(copies, 1 if part.copies is None or is_token(part.copies) else part.copies)


class ComponentUpdates:
    """The part of a component's L1 that sets how it is updated.

    Args:
        scope: the component.
        component: the component's L1 construct.
        endpoint: the L1 construct of the component's endpoint.
        policy: how SageMaker updates the component. None: SageMaker decides.
        allow: a function that adds a statement to the policies of the roles.
        copies: a function that returns the fewest and the most copies when the app is complete, each None if it is
            known only at deployment.
    """

    def __init__(
        self,
        scope: Construct,
        component: sagemaker.CfnInferenceComponent,
        endpoint: sagemaker.CfnEndpoint,
        policy: Rolling | None,
        allow: Callable[[Statement], None],
        copies: Callable[[], tuple[int | None, int | None]],
    ) -> None:
        self._scope = scope
        self._component = component
        self._endpoint = endpoint
        self._policy = policy
        self._allow = allow
        self._alarms: list[cloudwatch.IAlarm] = []
        if policy is not None:
            self._render(policy)
            if policy.alarms:
                self.add_alarms(policy.alarms)
            Aspects.of(component).add(_Warnings(scope, policy, self._alarms, copies))

    def add_alarms(self, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Let alarms roll an update back.

        Raises:
            ConfigurationError: there is no policy with a wait in which SageMaker watches them; there is no alarm, or
                too many; or an alarm is composite, belongs to another account or region, or uses an attribute of the
                component or its endpoint.
        """
        path = self._scope.node.path
        if self._policy is None:
            raise ConfigurationError(
                f"{path} has rollback alarms, but no deployment policy with a wait in which SageMaker watches them: "
                "pass deployment_policy=Rolling(…) to add_component"
            )
        if not alarms:
            raise ConfigurationError(f"roll_back_on() of {path} has no alarm: pass one, or remove the call")
        known = {alarm.node.path for alarm in self._alarms}
        new = list({alarm.node.path: alarm for alarm in alarms if alarm.node.path not in known}.values())
        self._policy._check_alarms([*self._alarms, *new])
        later = {"component": self._component, "endpoint": self._endpoint}
        for alarm in new:
            check_rollback_alarm(self._scope, alarm, later, "take a metric of component.metric_…()")
        if not new:
            return
        for alarm in new:
            warn_about_stack(self._scope, alarm)
        self._alarms += new
        self._render(self._policy)
        # "Ensure that your IAM execution role has permission to perform the cloudwatch:DescribeAlarms action on the
        # auto-rollback alarms you specify" ("Auto-Rollback Configuration and Monitoring").
        arns = [alarm.alarm_arn for alarm in new]
        self._allow(Statement(actions=["cloudwatch:DescribeAlarms"], resources=arns))

    def _render(self, policy: Rolling) -> None:
        rollback = None
        if self._alarms:
            names = [_L1.AlarmProperty(alarm_name=alarm.alarm_name) for alarm in self._alarms]
            rollback = _L1.AutoRollbackConfigurationProperty(alarms=names)
        back, longest = policy.rollback_batch, policy.maximum_time
        self._component.deployment_config = _L1.InferenceComponentDeploymentConfigProperty(
            rolling_update_policy=_L1.InferenceComponentRollingUpdatePolicyProperty(
                maximum_batch_size=_size(policy.batch),
                wait_interval_in_seconds=policy.wait.to_seconds(),
                rollback_maximum_batch_size=None if back is None else _size(back),
                maximum_execution_timeout_in_seconds=None if longest is None else longest.to_seconds(),
            ),
            auto_rollback_configuration=rollback,
        )


def _size(part: Capacity) -> sagemaker.CfnInferenceComponent.InferenceComponentCapacitySizeProperty:
    if part.percent is not None:
        return _L1.InferenceComponentCapacitySizeProperty(type="CAPACITY_PERCENT", value=part.percent)
    return _L1.InferenceComponentCapacitySizeProperty(type="COPY_COUNT", value=part.copies or 0)


@jsii.implements(IAspect)
class _Warnings:
    """Warns, when the app is complete, about alarms that come too late and a batch size that SageMaker rejects."""

    def __init__(
        self,
        scope: Construct,
        policy: Rolling,
        alarms: Sequence[cloudwatch.IAlarm],
        copies: Callable[[], tuple[int | None, int | None]],
    ) -> None:
        self._notes = Annotations.of(scope)
        self._scope = scope
        self._policy = policy
        self._alarms = alarms
        self._copies = copies

    def visit(self, node: IConstruct) -> None:
        if not isinstance(node, sagemaker.CfnInferenceComponent):
            return
        fewest, most = self._copies()
        warn_about_alarms(self._notes, self._policy, self._alarms, math.inf if most is None else most)
        counts = [None if each is None else max(1, each) for each in (fewest, most)]  # none is not updated in batches
        what, other = f"component {self._scope.node.id!r}", "choose another batch"
        is_scaled = fewest != most
        warn_about_step(
            self._notes, self._policy, what, counts, is_scaled=is_scaled, unit=("copy", "copies"), other=other
        )
