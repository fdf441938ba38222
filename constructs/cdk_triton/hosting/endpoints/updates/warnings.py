"""Warns about updates that would not go as intended, and about state that more than one instance would need.

Most warnings need the complete app: rollback alarms and limits of scaling come after the endpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Annotations, Duration, IAspect
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from cdk_triton._wording import in_words
from cdk_triton.hosting.endpoints.updates.policies import MAX_STEP_PERCENT, DeploymentPolicy
from cdk_triton.hosting.endpoints.variants.state import warn_about_shadow_state, warn_about_state
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.naming.literals import is_token
from cdk_triton.hosting.naming.stacks import stack_of

if TYPE_CHECKING:  # slow to import, and only needed with alarms or scaling
    from aws_cdk import aws_cloudwatch as cloudwatch

    from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount

__all__ = ["UpdateWarnings", "warn_about_alarms", "warn_about_step"]

NO_ALARMS_WARNING = "cdk-triton:UpdateWithoutAlarms"
SLOW_ALARM_WARNING = "cdk-triton:RollbackAlarmTooSlow"
INSTANCES_WARNING = "cdk-triton:UpdateStep"
MULTI_MODEL_WARNING = "cdk-triton:GuardrailsOfMultiModel"
KEPT_COUNT_WARNING = "cdk-triton:InstanceCountKept"


@jsii.implements(IAspect)
class UpdateWarnings:
    """Warns, when the app is complete, about updates that would not go as intended, and about divided state.

    Args:
        endpoint: the endpoint, which gets the warnings.
        variants: the endpoint's production variants.
        policy: how SageMaker updates the endpoint. None: SageMaker decides.
        alarms: the rollback alarms; later ones are appended.
        scaled: the scaling of variants by their names; later variants are added.
        served: the endpoint's variants and the shadow.
    """

    def __init__(
        self,
        endpoint: Construct,
        variants: Sequence[TritonVariant],
        policy: DeploymentPolicy | None,
        alarms: Sequence[cloudwatch.IAlarm],
        scaled: Mapping[str, ScalableInstanceCount],
        served: Sequence[TritonVariant],
    ) -> None:
        self._notes = Annotations.of(endpoint)
        self._variants = variants
        self._policy = policy
        self._alarms = alarms
        self._scaled = scaled
        self._served = served

    def visit(self, node: IConstruct) -> None:
        """Look at one construct."""
        if not isinstance(node, sagemaker.CfnEndpoint):
            return
        self._warn_about_state()
        if node.retain_all_variant_properties:
            self._warn_about_kept_counts()
        if self._policy is not None:
            self._warn_about_alarms(self._policy)
            for variant in self._variants:
                self._warn_about_multi_model(self._policy, variant)
                self._warn_about_step(self._policy, variant)

    def _warn_about_state(self) -> None:
        def most_instances(variant: TritonVariant) -> int | None:
            return self._instances(variant)[1]

        warn_about_state(self._notes, self._variants, most_instances)
        for shadow in self._served[len(self._variants) :]:
            warn_about_shadow_state(self._notes, shadow, self._variants[0], most_instances)

    def _warn_about_kept_counts(self) -> None:
        fixed = [each.variant_name for each in self._served if each.variant_name not in self._scaled]
        scaled = f" ({', '.join(map(repr, self._scaled))})" if self._scaled else ""
        if fixed:
            self._notes.add_warning_v2(
                KEPT_COUNT_WARNING,
                f"an update keeps the instance counts of all variants if one variant is scaled{scaled}, so a changed "
                f"initial_instance_count of {in_words(map(repr, fixed), 'and')} has no effect. Call "
                "auto_scale_instance_count for each variant, with equal limits for a fixed number, or acknowledge this",
            )

    def _warn_about_alarms(self, policy: DeploymentPolicy) -> None:
        highest = [self._instances(variant)[1] for variant in self._variants]
        most = max(math.inf if each is None else each for each in highest)
        warn_about_alarms(self._notes, policy, self._alarms, most)

    def _warn_about_multi_model(self, policy: DeploymentPolicy, variant: TritonVariant) -> None:
        if variant.model.is_multi_model:
            self._notes.add_warning_v2(
                MULTI_MODEL_WARNING,
                f"variant {variant.variant_name!r} is multi-model. SageMaker's table of supported features does not "
                "offer deployment guardrails for multi-model endpoints, but SageMaker's list of exclusions does not "
                f"contain these endpoints either: try {type(policy).__name__} in your account, then acknowledge this",
            )

    def _warn_about_step(self, policy: DeploymentPolicy, variant: TritonVariant) -> None:
        what, is_scaled = f"variant {variant.variant_name!r}", variant.variant_name in self._scaled
        warn_about_step(self._notes, policy, what, self._instances(variant), is_scaled=is_scaled)

    def _instances(self, variant: TritonVariant) -> tuple[int | None, int | None]:
        """The fewest and the most instances of a variant during an update; None for an unresolved token."""
        count = self._scaled.get(variant.variant_name)
        if count is None:
            initial = variant.initial_instance_count
            return (None, None) if is_token(initial) else (initial, initial)
        from cdk_triton.hosting.endpoints.scaling.capacities import capacity_range

        return capacity_range(count.scalable_target)


def warn_about_alarms(
    notes: Annotations, policy: DeploymentPolicy, alarms: Sequence[cloudwatch.IAlarm], most: float
) -> None:
    """Warn about a wait without alarms, and about alarms that take longer than the wait.

    Args:
        notes: the annotations of the updated resource.
        policy: how it is updated.
        alarms: the alarms that roll the update back.
        most: the most instances or copies; infinity for an unresolved token.
    """
    name = type(policy).__name__
    if policy._watches and not alarms:
        notes.add_warning_v2(
            NO_ALARMS_WARNING,
            f"{name} makes an update wait, but no alarm can roll the update back during the wait, so the wait only "
            "costs money: pass alarms=, or call roll_back_on",
        )
    watched = policy._watched_seconds(most)
    slow = [
        f"{alarm.node.path} ({datapoints} {'datapoint' if datapoints == 1 else 'datapoints'} of {_text(period)})"
        for alarm in alarms
        for datapoints, period in [_goes_off_after(alarm)]
        if datapoints * period >= watched
    ]
    if slow:
        notes.add_warning_v2(
            SLOW_ALARM_WARNING,
            f"{name} watches its alarms for {_text(watched)} at most, so an update may end before these alarms go off: "
            f"{', '.join(slow)}. Let {name} wait longer, or give the alarms shorter periods or fewer datapoints",
        )


def warn_about_step(
    notes: Annotations,
    policy: DeploymentPolicy,
    what: str,
    counts: Sequence[int | None],
    *,
    is_scaled: bool,
    unit: tuple[str, str] = ("instance", "instances"),
    other: str = "choose another step, use AllAtOnce",
) -> None:
    """Warn about a first step whose share of the instances SageMaker does not accept.

    Args:
        notes: the annotations of the updated resource.
        policy: how SageMaker updates the resource.
        what: the resource's name in the warning.
        counts: the fewest and the most instances or copies; None for an unresolved token.
        is_scaled: whether scaling sets the number.
        unit: the words for one and for several instances or copies.
        other: the alternative to acknowledging the warning.
    """
    step = policy._first_step
    if step is None:
        return
    few, many = step._bounds(policy._least_percent)
    unfit = [count for count in counts if count is not None and not few <= count <= many]
    if not unfit:
        return
    whole = "" if math.isfinite(many) else f"a step has at least one whole {unit[0]}, and "
    notes.add_warning_v2(
        INSTANCES_WARNING,
        f"{what} {'may be scaled to' if is_scaled else 'starts with'} {unfit[0]} {unit[0 if unfit[0] == 1 else 1]}, "
        f"but {type(policy).__name__} with a first step of {step} needs at least {few}"
        + (f" and at most {many:.0f}" if math.isfinite(many) else "")
        + f", because {whole}SageMaker accepts only steps of {policy._least_percent} to {MAX_STEP_PERCENT} % of the "
        + f"{unit[1]}: "
        + ("scale between other limits" if is_scaled else f"start with another number of {unit[1]}")
        + f", {other}, or acknowledge this",
    )


def _goes_off_after(alarm: cloudwatch.IAlarm) -> tuple[int, float]:
    """The number of datapoints that must breach, and the seconds of each; 0 for an alarm with unknown settings."""
    from aws_cdk import aws_cloudwatch as cloudwatch

    resource = alarm.node.default_child
    if not isinstance(resource, cloudwatch.CfnAlarm):
        return 0, 0
    all_of = resource.evaluation_periods
    datapoints = all_of if resource.datapoints_to_alarm is None else resource.datapoints_to_alarm
    watched = [{"period": resource.period}, *(stack_of(resource).resolve(resource.metrics) or ())]
    periods = [each.get("metricStat", each).get("period") for each in watched]
    known = [period for period in periods if isinstance(period, int | float) and not is_token(period)]
    return (0, 0) if datapoints is None or is_token(datapoints) or not known else (int(datapoints), max(known))


def _text(seconds: float) -> str:
    return Duration.seconds(seconds).to_human_string()
