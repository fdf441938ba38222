"""`ScalableCopyCount`: the number of copies of one inference component, and what makes it follow the load.

Sources: "Register a model", "Define a scaling policy" and "Scale an endpoint to zero instances" in SageMaker's
developer guide. SageMaker itself adds and removes the instances that the copies need (ManagedInstanceScaling).
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Aspects, Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import reject_token
from cdk_triton.hosting.endpoints.scaling.checks import NothingScales, check_capacities
from cdk_triton.hosting.endpoints.scaling.from_zero import start_from_zero
from cdk_triton.hosting.endpoints.scaling.schedules import ScheduledScaling
from cdk_triton.hosting.endpoints.scaling.target import scalable_target
from cdk_triton.hosting.endpoints.scaling.tracking import SAFETY_FACTOR, Tracking
from cdk_triton.hosting.endpoints.variants.metrics import ComponentMetrics
from cdk_triton.hosting.naming.runbooks import MAX_PATH

__all__ = ["ScalableCopyCount", "check_copy_capacities"]

DIMENSION: Final = "sagemaker:inference-component:DesiredCopyCount"

FIRST_COPY_SECONDS: Final = 60
"""The cooldown of the step policy in "Scale an endpoint to zero instances"."""


def check_copy_capacities(what: str, copies: int, min_capacity: int, max_capacity: int) -> None:
    """Reject limits that a component cannot have.

    Raises:
        ConfigurationError: the limits are not whole numbers, or contradict each other or the initial number of copies.
    """
    for name, capacity in (("min_capacity", min_capacity), ("max_capacity", max_capacity)):
        reject_token(capacity, f"{name} of {what}")
    check_capacities(what, copies, min_capacity, max_capacity, least=0, counted="copies", begins="copies={}")


class ScalableCopyCount(Construct, ScheduledScaling):
    """The limits of a component's number of copies, and its scaling policies.

    `auto_scale_copies` and `scale_to_zero` return it.

    As far as is known, a deployment does not undo scaling, because the template always contains the initial number of
    copies, and CloudFormation does not update a number that has not changed in the template.

    Attributes:
        min_capacity: the fewest copies.
        max_capacity: the most copies.
        scalable_target: the underlying CDK construct, for policies that this class does not offer.

    Args:
        scope: the component.
        id: the construct's id.
        component_name: the component's name.
        component: the construct that must exist before the scalable target.
        what: the component's name in errors.
        metrics: the metrics of the component.
        min_capacity: the fewest copies.
        max_capacity: the most copies.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        component_name: str,
        component: Construct,
        what: str,
        metrics: ComponentMetrics,
        min_capacity: int,
        max_capacity: int,
    ) -> None:
        super().__init__(scope, id)
        self.min_capacity = min_capacity
        self.max_capacity = max_capacity
        self._what = what
        self._counted = "copies"
        self._way_to_zero = "call scale_to_zero() in place of auto_scale_copies()"
        self._scheduled = set()
        self._metrics = metrics
        self.scalable_target = scalable_target(
            self,
            scalable_dimension=DIMENSION,
            resource_id=f"inference-component/{component_name}",
            capacities=(min_capacity, max_capacity),
            after=component,
        )
        self._tracking = Tracking(self.scalable_target, what)
        target = self.scalable_target.node.default_child
        assert target is not None  # the CDK's construct has one
        self.node.default_child = target
        Aspects.of(target).add(NothingScales("copies", "auto_scale_copies"))

    @checked
    def scale_on_invocations(
        self,
        id: str,
        *,
        max_requests_per_second: float,
        safety_factor: float = SAFETY_FACTOR,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the requests per copy. The target is a share of the most requests that one copy can serve.

        SageMaker's metric counts requests per minute, so the target is `max_requests_per_second * safety_factor * 60`.

        Args:
            id: the policy's id.
            max_requests_per_second: the most requests per second that one copy can serve, from a load test.
            safety_factor: the share of `max_requests_per_second` to aim at, above 0 and at most 1.
            scale_in_cooldown: the pause after copies were removed; 10 minutes by default.
            scale_out_cooldown: the pause after copies were added; 5 minutes by default.

        Raises:
            ConfigurationError: a number is out of its range, or the component scales on its invocations already.
        """
        return self._tracking.track_invocations(
            id,
            max_requests_per_second,
            safety_factor,
            autoscaling.PredefinedMetric.SAGEMAKER_INFERENCE_COMPONENT_INVOCATIONS_PER_COPY,
            scale_in_cooldown,
            scale_out_cooldown,
        )

    @checked
    def scale_on_concurrent_requests(
        self,
        id: str,
        *,
        target_concurrent_requests: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the requests that one copy processes or has queued. This is the fastest signal.

        SageMaker publishes this metric every 10 seconds.

        Args:
            id: the policy's id.
            target_concurrent_requests: the requests per copy, including the requests in Triton's queue.
            scale_in_cooldown: the pause after copies were removed; 10 minutes by default.
            scale_out_cooldown: the pause after copies were added; 5 minutes by default.

        Raises:
            ConfigurationError: the target is not positive, or the component scales on concurrent requests already.
        """
        return self._tracking.track_concurrent_requests(
            id,
            target_concurrent_requests,
            autoscaling.PredefinedMetric.SAGEMAKER_INFERENCE_COMPONENT_CONCURRENT_REQUESTS_PER_COPY_HIGH_RESOLUTION,
            scale_in_cooldown,
            scale_out_cooldown,
        )

    def _start_from_zero(self) -> None:
        """Add the first copy when a request finds none.

        Statistic, period and threshold are those of the sample `infrastructure/inference_component_scale_to_zero` in
        aws-samples/genai-ml-platform-examples. SageMaker's guide has an alarm of 60 seconds instead, which goes off at
        the second request of a minute.
        """
        start_from_zero(
            self,
            "",
            self.scalable_target,
            metric=self._metrics.metric_no_capacity_invocation_failures(
                statistic="Maximum", period=Duration.seconds(30)
            ),
            periods=1,
            aggregation=autoscaling.MetricAggregationType.MAXIMUM,
            cooldown=Duration.seconds(FIRST_COPY_SECONDS),
            description=f"{self._what[-MAX_PATH:]} was invoked without a copy; its first copy is started",
        )
