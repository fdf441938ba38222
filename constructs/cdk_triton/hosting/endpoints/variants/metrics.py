"""The metrics that SageMaker publishes of a variant: facts. `monitoring` has the opinions about them.

Source of names, namespaces, units and meanings: "Amazon SageMaker AI metrics in Amazon CloudWatch" in SageMaker's
developer guide, read in November 2026. All have the dimensions `EndpointName` and `VariantName`, those of a multi-model
endpoint too: no metric is per target model. Those of an inference component have `InferenceComponentName` instead.
Those of the queue of an asynchronous endpoint have `EndpointName` alone; "Alarms and logs for tracking metrics from
asynchronous endpoints" has the list of all that such an endpoint publishes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration

from cdk_triton._checked import checked
from cdk_triton.hosting.naming.service_names import check_sagemaker_name

if TYPE_CHECKING:  # takes a while: for endpoints whose metrics are asked for
    from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["ComponentMetrics", "EndpointMetrics", "InvocationMetrics", "VariantMetrics", "of_instance_type"]

INVOCATIONS = "AWS/SageMaker"
"""The namespace of what callers experience, and of what a multi-model endpoint loads for them."""

INSTANCES = "/aws/sagemaker/Endpoints"
"""The namespace of what instances use."""

COMPONENTS = "/aws/sagemaker/InferenceComponents"
"""The namespace of what the copies of an inference component use."""

PER_MILLISECOND = 1_000
PER_SECOND = 1_000_000
"""Microseconds, in which SageMaker publishes times."""

PER_PERCENT = 0.01
"""The share, from 0 to 1, that is an average of counts."""


class InvocationMetrics:
    """The metrics of what callers invoke, a variant or an inference component, as methods; each once a minute.

    Every method takes the statistic, as CloudWatch writes it (`Sum`, `p99`), and the period of a datapoint, by default
    a minute. SageMaker documents percentiles of the model latency only.
    """

    @property
    @abstractmethod
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions of all these metrics."""

    @checked
    def metric(
        self, metric_name: str, *, namespace: str = INVOCATIONS, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """A metric of this endpoint, variant or inference component, by the name that SageMaker gives the metric.

        Args:
            metric_name: the name, such as `Invocations`.
            namespace: the CloudWatch namespace of the metric.
            statistic: the statistic in CloudWatch's form, such as `Sum` or `p99`.
            period: the period of one datapoint; by default a minute.
        """
        from aws_cdk import aws_cloudwatch as cloudwatch

        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=metric_name,
            dimensions_map=self.metric_dimensions,
            statistic=statistic,
            period=_minute(period),
        )

    # What callers see.

    def metric_invocations(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """The number of requests."""
        return self.metric("Invocations", statistic=statistic, period=period)

    def metric_concurrent_requests(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of concurrent requests. SageMaker documents only the minimum and the maximum."""
        return self.metric("ConcurrentRequestsPerModel", statistic=statistic, period=period)

    def metric_model_latency(self, *, statistic: str = "Average", period: Duration | None = None) -> cloudwatch.Metric:
        """The time that the container took to answer, including the local communication with it; in microseconds."""
        return self.metric("ModelLatency", statistic=statistic, period=period)

    def metric_overhead_latency(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The time that SageMaker needed for a request in addition to the model latency; in microseconds."""
        return self.metric("OverheadLatency", statistic=statistic, period=period)

    def metric_invocation_4xx_errors(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that were answered with a 4xx status; the average is their share, from 0 to 1."""
        return self.metric("Invocation4XXErrors", statistic=statistic, period=period)

    def metric_invocation_5xx_errors(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that were answered with a 5xx status; the average is their share, from 0 to 1."""
        return self.metric("Invocation5XXErrors", statistic=statistic, period=period)

    def metric_invocation_model_errors(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that the container did not answer with a 2xx status.

        Requests with a 4xx or 5xx status count, and those that timed out or broke off. The average is their share, from
        0 to 1.
        """
        return self.metric("InvocationModelErrors", statistic=statistic, period=period)


class ComponentMetrics(InvocationMetrics):
    """The metrics of one inference component, with the one dimension `InferenceComponentName`.

    Those of its utilization are normalised: the share of what its copies have reserved, 0 to 100 whatever the number of
    GPUs ("SageMaker AI inference component metrics").
    """

    def metric_invocations_per_copy(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that each copy of the component got. SageMaker documents only the sum."""
        return self.metric("InvocationsPerCopy", statistic=statistic, period=period)

    def metric_no_capacity_invocation_failures(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that failed because no copy existed ("Scale an endpoint to zero instances")."""
        return self.metric("NoCapacityInvocationFailures", statistic=statistic, period=period)

    def metric_cpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of the vCPUs that a copy reserves, 0 to 100 percent."""
        return self.metric("CPUUtilizationNormalized", namespace=COMPONENTS, statistic=statistic, period=period)

    def metric_memory_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of the memory that a copy reserves, in percent."""
        return self.metric("MemoryUtilizationNormalized", namespace=COMPONENTS, statistic=statistic, period=period)

    def metric_gpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of the GPUs that a copy reserves, 0 to 100 percent."""
        return self.metric("GPUUtilizationNormalized", namespace=COMPONENTS, statistic=statistic, period=period)

    def metric_gpu_memory_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of the memory of the GPUs that a copy reserves, 0 to 100 percent."""
        return self.metric("GPUMemoryUtilizationNormalized", namespace=COMPONENTS, statistic=statistic, period=period)


class VariantMetrics(InvocationMetrics):
    """The metrics of one variant of an endpoint, as methods; SageMaker publishes each once a minute.

    Every method takes the statistic, as CloudWatch writes it (`Sum`, `p99`), and the period of a datapoint, by default
    a minute. SageMaker documents percentiles of the model latency only.
    """

    @property
    @abstractmethod
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`."""

    def metric_invocations_per_instance(
        self, *, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of requests that each instance of the variant got. SageMaker documents only the sum."""
        return self.metric("InvocationsPerInstance", statistic=statistic, period=period)

    def metric_instance_count(self, *, period: Duration | None = None) -> cloudwatch.MathExpression:
        """The number of instances that answered. A period without requests has no value.

        SageMaker does not publish this number, but counts each request as 1 in `Invocations`, and as 1 divided by the
        number of active instances in `InvocationsPerInstance`. The quotient of the two is this number.
        """
        from aws_cdk import aws_cloudwatch as cloudwatch

        return cloudwatch.MathExpression(
            expression="invocations / perInstance",
            using_metrics={
                "invocations": self.metric_invocations(period=period),
                "perInstance": self.metric_invocations_per_instance(period=period),
            },
            label="instances",
            period=_minute(period),
        )

    # What instances use. The average is that of the instances.

    def metric_cpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The sum of the utilization of all vCPUs of an instance, in percent. Four busy vCPUs have the sum 400."""
        return self.metric("CPUUtilization", namespace=INSTANCES, statistic=statistic, period=period)

    def metric_memory_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of an instance's memory, 0 to 100 percent."""
        return self.metric("MemoryUtilization", namespace=INSTANCES, statistic=statistic, period=period)

    def metric_gpu_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The sum of the utilization of all GPUs of an instance, in percent. Four busy GPUs have the sum 400."""
        return self.metric("GPUUtilization", namespace=INSTANCES, statistic=statistic, period=period)

    def metric_gpu_memory_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The sum of the memory utilization of all GPUs of an instance, in percent. Four full GPUs have the sum 400."""
        return self.metric("GPUMemoryUtilization", namespace=INSTANCES, statistic=statistic, period=period)

    def metric_disk_utilization(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The utilization of an instance's disk, 0 to 100 percent."""
        return self.metric("DiskUtilization", namespace=INSTANCES, statistic=statistic, period=period)

    # What waits for an asynchronous endpoint, and what became of it.

    def metric_backlog_size(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that wait or are processed, for all variants together."""
        return self._of_queue("ApproximateBacklogSize", statistic, period)

    def metric_backlog_size_per_instance(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The backlog size of an asynchronous endpoint, divided by the number of instances."""
        return self._of_queue("ApproximateBacklogSizePerInstance", statistic, period)

    def metric_oldest_request_age(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The age of the oldest request to an asynchronous endpoint; in seconds."""
        return self._of_queue("ApproximateAgeOfOldestRequest", statistic, period)

    def metric_failed_requests(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that failed. Their errors are below `failure_prefix`."""
        return self.metric("InvocationFailures", statistic=statistic, period=period)

    def metric_expired_requests(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that expired in the queue. No container processes them."""
        return self.metric("ExpiredRequests", statistic=statistic, period=period)

    def _of_queue(self, metric_name: str, statistic: str, period: Duration | None) -> cloudwatch.Metric:
        endpoint = {"EndpointName": self.metric_dimensions["EndpointName"]}
        return self.metric(metric_name, statistic=statistic, period=period).with_(dimensions_map=endpoint)

    # What a multi-model endpoint loads.

    def metric_loaded_model_count(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The number of archives that an instance has loaded. The sum counts an archive once for each instance."""
        return self.metric("LoadedModelCount", namespace=INSTANCES, statistic=statistic, period=period)

    def metric_model_cache_hit(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The share of requests (0 to 1) whose archive was already loaded. The sum is the number of such requests."""
        return self.metric("ModelCacheHit", statistic=statistic, period=period)

    def metric_model_loading_wait_time(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The time that a request waited until its archive was downloaded and loaded; in microseconds."""
        return self.metric("ModelLoadingWaitTime", statistic=statistic, period=period)

    def metric_model_downloading_time(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The time that the download of an archive took; in microseconds."""
        return self.metric("ModelDownloadingTime", statistic=statistic, period=period)

    def metric_model_loading_time(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The time that the container took to load an archive; in microseconds."""
        return self.metric("ModelLoadingTime", statistic=statistic, period=period)

    def metric_model_unloading_time(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """The time that the container took to unload an archive; in microseconds. `SampleCount` counts the archives."""
        return self.metric("ModelUnloadingTime", statistic=statistic, period=period)


@checked
@dataclass(frozen=True, kw_only=True)
class EndpointMetrics(VariantMetrics):
    """The metrics of a variant, from the names of the endpoint and the variant.

    Use it for an endpoint in another stack, or for one that does not exist yet: an endpoint refers to its rollback
    alarms, so these cannot take the name from it.

    Attributes:
        endpoint_name: the endpoint's name.
        variant_name: the variant's name.

    Raises:
        ConfigurationError: SageMaker would reject one of the names.
    """

    endpoint_name: str
    variant_name: str = "AllTraffic"

    def __post_init__(self) -> None:
        """Reject a name that no metric can have."""
        check_sagemaker_name(self.endpoint_name, "endpoint_name")
        check_sagemaker_name(self.variant_name, "variant_name")

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`."""
        return {"EndpointName": self.endpoint_name, "VariantName": self.variant_name}


def of_instance_type(metric: cloudwatch.Metric, instance_type: str) -> cloudwatch.Metric:
    """A metric of a variant with instance pools, of one instance type alone.

    "CloudWatch publishes these metrics with an InstanceType dimension" ("Monitor instance pools",
    realtime-endpoints-heterogeneous in SageMaker's developer guide).
    """
    return metric.with_(dimensions_map={**(metric.dimensions or {}), "InstanceType": instance_type})


def _minute(period: Duration | None) -> Duration:
    return Duration.minutes(1) if period is None else period
