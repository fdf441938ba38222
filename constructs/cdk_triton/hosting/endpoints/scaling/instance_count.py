"""`ScalableInstanceCount`: the number of instances of one variant, and what makes it follow the load.

Sources: SageMaker's developer guide ("Automatic scaling of
Amazon SageMaker AI models") and the user guide of Application Auto Scaling, which does the scaling.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Annotations, Aspects, Duration
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._tokens import reject_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.scaling.backlog import UNPUBLISHED, BacklogScaling, StaysAtZero, reject_unpublished
from cdk_triton.hosting.endpoints.scaling.checks import (
    NothingScales,
    check_capacities,
    check_new_policy,
    check_percent,
)
from cdk_triton.hosting.endpoints.scaling.schedules import ScheduledScaling
from cdk_triton.hosting.endpoints.scaling.steps import check_evaluation, check_steps, set_scale_in_cooldown
from cdk_triton.hosting.endpoints.scaling.target import scalable_target
from cdk_triton.hosting.endpoints.scaling.tracking import (
    SAFETY_FACTOR,
    SCALE_IN_COOLDOWN_SECONDS,
    SCALE_OUT_COOLDOWN_SECONDS,
    Tracking,
    cooldown_of,
    rounded,
)
from cdk_triton.hosting.endpoints.scaling.weighting import GPUS, VCPUS, Units, track_mean_of_types
from cdk_triton.hosting.endpoints.variants.metrics import INSTANCES, VariantMetrics
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant

__all__ = ["ScalableInstanceCount"]

NEVER_SCALES_OUT_WARNING = "cdk-triton:NeverScalesOut"
MULTI_MODEL_MEMORY_WARNING = "cdk-triton:GpuMemoryOfMultiModel"


class ScalableInstanceCount(Construct, BacklogScaling, ScheduledScaling):
    """The limits of a variant's instance count, and its scaling policies. `auto_scale_instance_count` returns it.

    With several policies, the variant scales out as soon as one policy requires it, and scales in when all policies
    allow it. The steps of `scale_on_metric` are an exception: they remove instances even if other policies do not allow
    it (API reference, PutScalingPolicy).

    A deployment does not undo scaling, because an update of the endpoint keeps its instance counts. SageMaker rejects a
    change of the instance type of a scaled variant. So first deploy the variant without scaling, and then the other
    type with scaling.

    If a variant's instance types have different GPUs or vCPU counts, policies on GPU, GPU memory or vCPU utilization
    track the mean over the types that currently have instances. The metrics of invocations and concurrent requests do
    not distinguish between instance types.

    Attributes:
        min_capacity: the fewest instances.
        max_capacity: the most instances.
        scalable_target: the underlying CDK construct, for policies that this class does not offer.

    Args:
        scope: the variant's construct.
        id: the construct's id.
        endpoint: the L1 of the endpoint.
        variant: the scaled variant.
        what: the variant's name in errors, such as `variant AllTraffic of Stack/Endpoint`.
        metrics: the metrics of the variant.
        min_capacity: the fewest instances: at least 1, or at least 0 for an asynchronous endpoint.
        max_capacity: the most instances.
        is_async: whether the endpoint is asynchronous.

    Raises:
        ConfigurationError: the limits contradict each other or the variant's initial count, or do not allow any
            instance.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: sagemaker.CfnEndpoint,
        variant: TritonVariant,
        what: str,
        metrics: VariantMetrics,
        min_capacity: int,
        max_capacity: int,
        is_async: bool = False,
    ) -> None:
        if is_async:  # a minimum of 0 needs another policy, which no deployment can add
            reject_token(min_capacity, f"min_capacity of {what}")
        # With 0 as the minimum, an initial count of 0 would pass: TritonVariant has rejected it.
        check_capacities(what, variant.initial_instance_count, min_capacity, max_capacity, least=0 if is_async else 1)
        super().__init__(scope, id)
        self.min_capacity = min_capacity
        self.max_capacity = max_capacity
        self._what = what
        self._variant = variant
        self._metrics = metrics
        self._is_async = is_async
        self._counted = "instances"
        self._way_to_zero = "set min_capacity=0 in auto_scale_instance_count()" if is_async else None
        self._scheduled = set()
        self.scalable_target = scalable_target(
            self,
            scalable_dimension="sagemaker:variant:DesiredInstanceCount",
            resource_id=f"endpoint/{endpoint.attr_endpoint_name}/variant/{variant.variant_name}",
            capacities=(min_capacity, max_capacity),
            after=endpoint,
        )
        self._tracking = Tracking(self.scalable_target, what)
        target = self.scalable_target.node.default_child
        assert target is not None  # the CDK's construct has one
        self.node.default_child = target
        Aspects.of(target).add(NothingScales(unpublished=UNPUBLISHED if is_async else ()))
        if min_capacity == 0:
            Aspects.of(target).add(StaysAtZero())

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
        """Scale on the requests per instance. The target is a share of the most requests that one instance can serve.

        This is the best signal for most models. SageMaker's metric counts requests per minute, so the target is
        `max_requests_per_second * safety_factor * 60`. The formula is from AWS's page "Load testing your auto scaling
        configuration".

        Args:
            id: the policy's id.
            max_requests_per_second: the most requests per second that one instance can serve, from a load test.
            safety_factor: the share of `max_requests_per_second` to aim at, above 0 and at most 1.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: a number is out of its range, or the variant scales on its invocations already.
        """
        if self._is_async:
            reject_unpublished(self._policy(id), "InvocationsPerInstance")
        return self._tracking.track_invocations(
            id,
            max_requests_per_second,
            safety_factor,
            autoscaling.PredefinedMetric.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE,
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
        """Scale on the requests that one instance processes or has queued. This is the fastest signal.

        SageMaker publishes this metric every 10 seconds, not every minute ("Define a scaling policy", high-resolution
        metrics). Scaling in is not faster than with other policies.

        Args:
            id: the policy's id.
            target_concurrent_requests: the requests per instance, including the requests in Triton's queue.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: the target is not positive, or the variant scales on concurrent requests already.
        """
        if self._is_async:
            reject_unpublished(self._policy(id), "ConcurrentRequestsPerModel")
        return self._tracking.track_concurrent_requests(
            id,
            target_concurrent_requests,
            autoscaling.PredefinedMetric.SAGEMAKER_VARIANT_CONCURRENT_REQUESTS_PER_MODEL_HIGH_RESOLUTION,
            scale_in_cooldown,
            scale_out_cooldown,
        )

    @checked
    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the utilization of the GPUs.

        SageMaker's metric is the sum over the GPUs of an instance, for example 0 to 400 with four, so your percentage
        is multiplied by the GPU count (re:Post, "sagemaker-cpu-gpu-utilization-100").

        Args:
            id: the policy's id.
            target_utilization_percent: the target for one GPU, 1 to 100, whatever the number of GPUs.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: the target is out of its range, or the variant scales on this metric already.
        """
        return self._track_utilization(
            id, "GPUUtilization", target_utilization_percent, GPUS, scale_in_cooldown, scale_out_cooldown
        )

    @checked
    def scale_on_gpu_memory_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the share of GPU memory in use, for models whose memory grows with the requests.

        A model takes most of its memory when it is loaded, and keeps it, so another instance rarely lowers the share.
        Synth warns for a multi-model endpoint, whose instances fill up with models. The metric is the sum over
        the GPUs, as `GPUUtilization` is.

        Args:
            id: the policy's id.
            target_utilization_percent: the target for one GPU, 1 to 100, whatever the number of GPUs.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: the target is out of its range, or the variant scales on this metric already.
        """
        policy = self._track_utilization(
            id, "GPUMemoryUtilization", target_utilization_percent, GPUS, scale_in_cooldown, scale_out_cooldown
        )
        if self._variant.model.is_multi_model:
            Annotations.of(self).add_warning_v2(
                MULTI_MODEL_MEMORY_WARNING,
                f"{self._what} scales on the GPU memory of a multi-model endpoint, but this metric does not follow the "
                "load: instances keep models until the GPU memory is full, and a new instance loads the models, too. "
                "Scale on invocations or concurrent requests, or acknowledge this",
            )
        return policy

    @checked
    def scale_on_cpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Scale on the utilization of the vCPUs, if Python or pre-processing on the CPU is the bottleneck.

        SageMaker's metric is the sum over the vCPUs of an instance, for example 0 to 800 with eight, so your percentage
        is multiplied by the vCPU count (re:Post, "sagemaker-cpu-gpu-utilization-100"). One busy Python process adds 100
        to the sum, which is 12.5 percent of eight vCPUs.

        Args:
            id: the policy's id.
            target_utilization_percent: the target for one vCPU, 1 to 100, whatever the number of vCPUs.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: the target is out of its range, or the variant scales on this metric already.
        """
        return self._track_utilization(
            id, "CPUUtilization", target_utilization_percent, VCPUS, scale_in_cooldown, scale_out_cooldown
        )

    @checked
    def scale_on_metric(
        self,
        id: str,
        *,
        metric: cloudwatch.IMetric,
        scaling_steps: Sequence[autoscaling.ScalingInterval],
        evaluation_periods: int | None = None,
        datapoints_to_alarm: int | None = None,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
    ) -> autoscaling.StepScalingPolicy:
        """Add or remove instances in steps that depend on any metric, including a math expression.

        Together with a target tracking policy, give only steps that add instances. Steps that remove instances do not
        wait until that policy agrees, so that policy may add the instances again (API reference, PutScalingPolicy).

        Args:
            id: the policy's id.
            metric: the metric. Its period becomes the period of the alarms, so use 1 minute for a quick reaction.
            scaling_steps: 2 to 40 intervals of the metric. `change` is the number of instances to add, or to remove if
                it is negative. Nothing happens in a gap between two intervals. One gap is allowed.
            evaluation_periods: the number of periods that an alarm evaluates; 1 by default.
            datapoints_to_alarm: the number of these periods that must be in the interval; all by default. Needs
                `evaluation_periods`.
            scale_in_cooldown: the pause after instances were removed; 10 minutes by default.
            scale_out_cooldown: the pause after instances were added; 5 minutes by default.

        Raises:
            ConfigurationError: there are too few or too many steps, or they overlap; a `change` is not a whole number,
                or all are 0; there are more datapoints than periods; or the CDK cannot create an alarm on the metric in
                this region.
        """
        what = self._policy(id)
        check_new_policy(self.scalable_target, id, self._what)
        check_steps(what, scaling_steps)
        check_evaluation(what, evaluation_periods, datapoints_to_alarm)
        scale_in = cooldown_of(f"scale_in_cooldown of {what}", scale_in_cooldown, SCALE_IN_COOLDOWN_SECONDS)
        scale_out = cooldown_of(f"scale_out_cooldown of {what}", scale_out_cooldown, SCALE_OUT_COOLDOWN_SECONDS)
        try:
            policy = self.scalable_target.scale_on_metric(
                id,
                metric=metric,
                scaling_steps=list(scaling_steps),
                evaluation_periods=evaluation_periods,
                datapoints_to_alarm=datapoints_to_alarm,
                cooldown=scale_out,
            )
        except RuntimeError as error:  # jsii's, of intervals that overlap, or a metric that no alarm can have
            self.scalable_target.node.try_remove_child(id)
            raise ConfigurationError(f"the CDK rejects {what}: {error}") from error
        set_scale_in_cooldown(policy, scale_in)
        return policy

    def _track_utilization(
        self,
        policy_id: str,
        metric_name: str,
        percent: float,
        units: Units,
        scale_in_cooldown: Duration | None,
        scale_out_cooldown: Duration | None,
    ) -> autoscaling.TargetTrackingScalingPolicy:
        """Track a metric that is the sum over the units of an instance, each from 0 to 100.

        If instance pools differ in their GPUs or in the number of units, their sums cannot be compared. The policy then
        compares the metrics of each instance type.
        """
        check_percent(f"target_utilization_percent of {self._policy(policy_id)}", percent)
        metric = self._metrics.metric(metric_name, namespace=INSTANCES, statistic="Average")
        instances = [model.platform.instance for model in self._variant.models]
        of_type = {instance.name: units(instance) for instance in instances}
        kinds = {(units(each), each.gpu if units is GPUS else "") for each in instances}
        is_mixed = len(kinds) > 1
        policy = self._tracking.track(
            policy_id,
            metric_name,
            rounded(percent if is_mixed else percent * units(instances[0])),
            metric.with_(unit=cloudwatch.Unit.PERCENT),
            scale_in_cooldown,
            scale_out_cooldown,
        )
        if is_mixed:
            track_mean_of_types(policy, metric, of_type)
        if percent == 100:
            Annotations.of(self).add_warning_v2(
                NEVER_SCALES_OUT_WARNING,
                f"{self._what} scales on {metric_name} with a target of 100 percent. Scaling adds instances when the "
                "metric is above the target, but the metric cannot exceed 100 percent. Choose a lower target, or "
                "acknowledge this",
            )
        return policy

    def _queued_endpoint(self, what: str) -> str:
        if not self._is_async:
            raise ConfigurationError(
                f"{what} follows the backlog, but a real-time endpoint has no backlog: pass "
                "asynchronous=AsyncInference() to the endpoint, or use another scale_on_ method"
            )
        return self._metrics.metric_dimensions["EndpointName"]

    def _policy(self, id: str) -> str:
        return f"policy {id!r} of {self._what}"
