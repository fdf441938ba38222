"""Target tracking policies, with the cooldowns and checks that instances and copies have in common."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.scaling.checks import check_new_policy, check_number
from cdk_triton.hosting.naming.literals import literal_seconds

__all__ = [
    "SAFETY_FACTOR",
    "SCALE_IN_COOLDOWN_SECONDS",
    "SCALE_OUT_COOLDOWN_SECONDS",
    "Tracking",
    "check_invocations",
    "cooldown_of",
    "rounded",
]

SCALE_OUT_COOLDOWN_SECONDS = 300
"""The default of Application Auto Scaling for endpoint variants. A GPU instance starts in about that time."""

SCALE_IN_COOLDOWN_SECONDS = 600
"""Twice the service's default, because after a premature removal the next instance must start, download its archive and
load it."""

SAFETY_FACTOR = 0.5
"""The value that the developer guide recommends to begin with ("Load testing your auto scaling configuration")."""

_LEAST_TARGET, _MOST_TARGET = 2.0**-360, 2.0**360
"""The bounds of a target (API reference, `TargetValue` of TargetTrackingScalingPolicyConfiguration)."""


class Tracking:
    """The target tracking policies of one scalable target.

    Args:
        target: the scalable target.
        what: the target's name in messages, such as `variant AllTraffic of Stack/Endpoint`.
    """

    def __init__(self, target: autoscaling.ScalableTarget, what: str) -> None:
        self._target = target
        self._what = what
        self._tracked: set[str] = set()

    def track_invocations(
        self,
        policy_id: str,
        max_requests_per_second: float,
        safety_factor: float,
        metric: autoscaling.PredefinedMetric,
        scale_in_cooldown: Duration | None,
        scale_out_cooldown: Duration | None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Keep the requests per instance or copy at a share of its maximum.

        SageMaker's metric counts per minute, so the target is `max_requests_per_second * safety_factor * 60` ("Load
        testing your auto scaling configuration").
        """
        check_invocations(f"policy {policy_id!r} of {self._what}", max_requests_per_second, safety_factor)
        target = rounded(max_requests_per_second * safety_factor * 60)
        return self.track(policy_id, "invocations", target, metric, scale_in_cooldown, scale_out_cooldown)

    def track_concurrent_requests(
        self,
        policy_id: str,
        target: float,
        metric: autoscaling.PredefinedMetric,
        scale_in_cooldown: Duration | None,
        scale_out_cooldown: Duration | None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Keep the number of requests that one instance or copy processes or has queued."""
        check_number(f"target_concurrent_requests of policy {policy_id!r} of {self._what}", target)
        return self.track(policy_id, "concurrent requests", target, metric, scale_in_cooldown, scale_out_cooldown)

    def track(
        self,
        policy_id: str,
        what: str,
        target: float,
        metric: autoscaling.PredefinedMetric | cloudwatch.Metric,
        scale_in_cooldown: Duration | None,
        scale_out_cooldown: Duration | None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Add a target tracking policy.

        Application Auto Scaling accepts several of them if each has a different metric ("Target tracking scaling
        policies").
        """
        if what in self._tracked:
            raise ConfigurationError(
                f"{self._what} already scales on {what}, and only one policy can follow a metric: remove {policy_id!r}"
            )
        check_new_policy(self._target, policy_id, self._what)
        named = f"policy {policy_id!r} of {self._what}"
        if not _LEAST_TARGET <= target <= _MOST_TARGET:
            raise ConfigurationError(
                f"{named} would have the target {target:g}, but Application Auto Scaling takes 2^-360 to 2^360: use "
                "numbers from a load test"
            )
        scale_in = cooldown_of(f"scale_in_cooldown of {named}", scale_in_cooldown, SCALE_IN_COOLDOWN_SECONDS)
        scale_out = cooldown_of(f"scale_out_cooldown of {named}", scale_out_cooldown, SCALE_OUT_COOLDOWN_SECONDS)
        policy = self._target.scale_to_track_metric(
            policy_id,
            target_value=target,
            predefined_metric=metric if isinstance(metric, autoscaling.PredefinedMetric) else None,
            custom_metric=metric if isinstance(metric, cloudwatch.Metric) else None,
            scale_in_cooldown=scale_in,
            scale_out_cooldown=scale_out,
        )
        self._tracked.add(what)
        return policy


def check_invocations(what: str, max_requests_per_second: float, safety_factor: float) -> None:
    """Reject a rate or a share from which no target can be computed.

    Raises:
        ConfigurationError: one of them is out of its range.
    """
    check_number(f"max_requests_per_second of {what}", max_requests_per_second)
    check_number(f"safety_factor of {what}", safety_factor, at_most=1)


def cooldown_of(what: str, given: Duration | None, default: int) -> Duration:
    """The pause that was given, or the default in seconds.

    Raises:
        ConfigurationError: the pause is not a whole number of seconds.
    """
    seconds = literal_seconds(given)
    if seconds is not None and seconds != int(seconds):
        raise ConfigurationError(f"{what} is {seconds:g} seconds: Application Auto Scaling takes whole seconds")
    return Duration.seconds(default) if given is None else given


def rounded(target: float) -> float:
    """Round off the noise of binary fractions, which would be in the template: 0.7 * 3 * 60 is 125.99999999999999."""
    return float(f"{target:.12g}")
