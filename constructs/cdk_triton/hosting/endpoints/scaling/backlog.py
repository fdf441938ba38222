"""Scaling of an asynchronous endpoint on its queue, and back from zero instances.

Source of the metrics and of every number: "Autoscale an asynchronous endpoint" and "Alarms and logs for tracking
metrics from asynchronous endpoints" in SageMaker's developer guide, read in November 2026. The metrics of the queue
have the dimension `EndpointName` alone.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import jsii
from aws_cdk import Annotations, Duration, IAspect
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.scaling.checks import check_number
from cdk_triton.hosting.endpoints.scaling.from_zero import FROM_ZERO, start_from_zero
from cdk_triton.hosting.endpoints.scaling.tracking import Tracking
from cdk_triton.hosting.endpoints.variants.metrics import INVOCATIONS
from cdk_triton.hosting.naming.runbooks import MAX_PATH

__all__ = ["UNPUBLISHED", "BacklogScaling", "StaysAtZero", "reject_unpublished"]

STAYS_AT_ZERO_WARNING: Final = "cdk-triton:StaysAtZero"
UNPUBLISHED: Final = (
    "SageMakerVariantInvocationsPerInstance",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution",
)
"""The predefined metrics that asynchronous endpoints do not have; see `reject_unpublished`."""

ALARM_PERIODS: Final = 2
"""Minutes with requests and without an instance, after which the first instance is started."""

FIRST_INSTANCE_SECONDS: Final = 300
"""The cooldown of the step policy in the guide."""


class BacklogScaling:
    """The method of `ScalableInstanceCount` for asynchronous endpoints."""

    scalable_target: autoscaling.ScalableTarget
    min_capacity: int
    _tracking: Tracking

    @abstractmethod
    def _policy(self, id: str) -> str:
        """Describe a policy for error messages."""

    @abstractmethod
    def _queued_endpoint(self, what: str) -> str:
        """The endpoint's name.

        Raises:
            ConfigurationError: the endpoint is not asynchronous.
        """

    @checked
    def scale_on_backlog(
        self,
        id: str,
        *,
        target_backlog_per_instance: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the number of requests per instance that are waiting or in process at an asynchronous endpoint.

        If `min_capacity` is 0, a second policy starts the first instance when requests have waited for two minutes.
        Without the second policy, no instance would start until the number of waiting requests exceeds the target.

        Args:
            id: the policy's id.
            target_backlog_per_instance: the target number of requests per instance, including the requests that the
                container is processing.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: the endpoint is not asynchronous, the target is not positive, or the variant scales on
                its backlog already.
        """
        what = self._policy(id)
        check_number(f"target_backlog_per_instance of {what}", target_backlog_per_instance)
        endpoint_name = self._queued_endpoint(what)
        policy = self._tracking.track(
            id,
            "backlog",
            target_backlog_per_instance,
            _metric("ApproximateBacklogSizePerInstance", endpoint_name),
            scale_in_cooldown,
            scale_out_cooldown,
        )
        if self.min_capacity == 0:
            start_from_zero(
                self.scalable_target,
                id,
                self.scalable_target,
                metric=_metric("HasBacklogWithoutCapacity", endpoint_name),
                periods=ALARM_PERIODS,
                aggregation=autoscaling.MetricAggregationType.AVERAGE,
                cooldown=Duration.seconds(FIRST_INSTANCE_SECONDS),
                description=f"{self.scalable_target.node.path[-MAX_PATH:]}: requests wait and there is no instance, so "
                "the first one starts",
            )
        return policy


@jsii.implements(IAspect)
class StaysAtZero:
    """Warns, when the app is complete, if a target can scale to zero, and no policy starts an instance."""

    def visit(self, node: IConstruct) -> None:
        """Look at one construct."""
        scope = node.node.scope
        if not isinstance(node, autoscaling.CfnScalableTarget) or scope is None or node.min_capacity != 0:
            return
        if not any(child.node.id.endswith(FROM_ZERO) for child in scope.node.children):
            Annotations.of(node).add_warning_v2(
                STAYS_AT_ZERO_WARNING,
                "min_capacity is 0, and no policy of scale_on_backlog starts the first instance, so requests may wait "
                "until they expire. Call scale_on_backlog, or acknowledge this if something else adds instances",
            )


def reject_unpublished(what: str, metric: str) -> None:
    """Reject a policy on a metric that SageMaker does not publish for asynchronous endpoints.

    The developer guide has "an exhaustive list of metrics for asynchronous endpoints".

    Raises:
        ConfigurationError: always.
    """
    raise ConfigurationError(
        f"{what} would follow {metric}, which SageMaker does not publish for asynchronous endpoints: use "
        "scale_on_backlog"
    )


def _metric(name: str, endpoint_name: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=INVOCATIONS,
        metric_name=name,
        dimensions_map={"EndpointName": endpoint_name},
        statistic="Average",
        period=Duration.minutes(1),
    )
