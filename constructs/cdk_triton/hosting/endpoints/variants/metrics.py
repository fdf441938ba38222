"""The metrics that SageMaker publishes about a variant. `monitoring` has the thresholds.

Source of names, namespaces, units and meanings: "Amazon SageMaker AI metrics in Amazon CloudWatch" in SageMaker's
developer guide, read in November 2026. All metrics have the dimensions `EndpointName` and `VariantName`, even those of
a multi-model endpoint: no metric is per target model. The metrics of an inference component have
`InferenceComponentName` instead. The metrics of an asynchronous endpoint's queue have only `EndpointName`; "Alarms and
logs for tracking metrics from asynchronous endpoints" lists all metrics of such an endpoint.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from aws_cdk import Duration
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._options import takes
from cdk_triton.hosting.naming.service_names import check_sagemaker_name
from cdk_triton.hosting.naming.stacks import literal_environment, stack_of

if TYPE_CHECKING:  # slow to import, and only needed for metrics
    from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = [
    "ComponentMetrics",
    "EndpointMetrics",
    "InvocationMetrics",
    "MetricOptions",
    "VariantMetrics",
    "of_instance_type",
]

INVOCATIONS = "AWS/SageMaker"
"""The namespace of requests, and of the loading of models on multi-model endpoints."""

INSTANCES = "/aws/sagemaker/Endpoints"
"""The namespace of the utilization of instances."""

COMPONENTS = "/aws/sagemaker/InferenceComponents"
"""The namespace of the utilization of inference components."""

PER_MILLISECOND = 1_000
PER_SECOND = 1_000_000
"""The microseconds of a second: SageMaker publishes times in microseconds."""

PER_PERCENT = 0.01
"""An average of counts is a share, from 0 to 1."""


class MetricOptions(TypedDict, total=False):
    """The CDK's options of a metric, which every `metric_…` method takes by name.

    Attributes:
        account: the account that publishes the metric; by default the endpoint's.
        color: the colour in graphs, such as `#00ff00`, or one of `cloudwatch.Color`.
        dimensions_map: dimensions other than those of the endpoint's variant or component.
        id: an identifier in the expressions of a dashboard.
        label: the text in graphs.
        period: the period of one datapoint; a minute by default, because SageMaker publishes once a minute.
        region: the region that publishes the metric; by default the endpoint's.
        stack_account: the account of the endpoint's stack, for the CDK's `attach_to`.
        stack_region: the region of the endpoint's stack, for the CDK's `attach_to`.
        statistic: the statistic in CloudWatch's form, such as `Sum` or `p99`. SageMaker documents percentiles of the
            model latency only.
        unit: the unit by which CloudWatch filters; by default all units.
        visible: whether graphs show the metric; True by default.
    """

    account: str | None
    color: str | None
    dimensions_map: Mapping[str, str] | None
    id: str | None
    label: str | None
    period: Duration | None
    region: str | None
    stack_account: str | None
    stack_region: str | None
    statistic: str | None
    unit: cloudwatch.Unit | None
    visible: bool | None


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _takes_options(method: _Method) -> _Method:
    """Give a method with `**options` the options of a metric, and check their types."""
    return checked(takes(MetricOptions)(method))


class InvocationMetrics:
    """The metrics that variants and inference components share, as methods.

    SageMaker publishes each metric once a minute. Every method takes the options of a metric of the CDK, such as
    `statistic`, `period`, `label` and `color`.
    """

    @property
    @abstractmethod
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions of all these metrics."""

    @_takes_options
    def metric(
        self, metric_name: str, *, namespace: str = INVOCATIONS, **options: Unpack[MetricOptions]
    ) -> cloudwatch.Metric:
        """A metric of this endpoint, variant or inference component, by the name that SageMaker gives the metric.

        Args:
            metric_name: the name, such as `Invocations`.
            namespace: the CloudWatch namespace of the metric.
            **options: the options of a metric; `MetricOptions` has the list. The statistic is `Sum` by default.
        """
        return self._metric(metric_name, "Sum", options, namespace)

    def _metric(
        self, metric_name: str, statistic: str, options: MetricOptions, namespace: str = INVOCATIONS
    ) -> cloudwatch.Metric:
        from aws_cdk import aws_cloudwatch as cloudwatch

        account, region = self._environment
        defaults: dict[str, Any] = {
            "dimensions_map": self.metric_dimensions,
            "period": Duration.minutes(1),
            "stack_account": account,
            "stack_region": region,
            "statistic": statistic,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return cloudwatch.Metric(namespace=namespace, metric_name=metric_name, **defaults | given)

    @property
    def _environment(self) -> tuple[str | None, str | None]:
        """The account and region that publish the metrics, as far as they are known.

        With them, a dashboard in another account or region shows the metrics, as with the CDK's `attach_to`.
        """
        return literal_environment(stack_of(self)) if isinstance(self, Construct) else (None, None)

    # Requests.

    @_takes_options
    def metric_invocations(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests."""
        return self._metric("Invocations", "Sum", options)

    @_takes_options
    def metric_concurrent_requests(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of concurrent requests. SageMaker documents only the minimum and the maximum."""
        return self._metric("ConcurrentRequestsPerModel", "Maximum", options)

    @_takes_options
    def metric_model_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that the container took to answer, including the local communication with it; in microseconds."""
        return self._metric("ModelLatency", "Average", options)

    @_takes_options
    def metric_overhead_latency(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that SageMaker needed for a request in addition to the model latency; in microseconds."""
        return self._metric("OverheadLatency", "Average", options)

    @_takes_options
    def metric_invocation_4xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that were answered with a 4xx status; the average is their share, from 0 to 1."""
        return self._metric("Invocation4XXErrors", "Sum", options)

    @_takes_options
    def metric_invocation_5xx_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that were answered with a 5xx status; the average is their share, from 0 to 1."""
        return self._metric("Invocation5XXErrors", "Sum", options)

    @_takes_options
    def metric_invocation_model_errors(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that the container did not answer with a 2xx status.

        These are requests with a 4xx or 5xx status, and requests that timed out or broke off. The average is their
        share, from 0 to 1.
        """
        return self._metric("InvocationModelErrors", "Sum", options)


class ComponentMetrics(InvocationMetrics):
    """The metrics of one inference component, with the one dimension `InferenceComponentName`.

    The utilization metrics are normalised: the share of what the component's copies have reserved, 0 to 100 whatever
    the number of GPUs ("SageMaker AI inference component metrics").
    """

    @_takes_options
    def metric_invocations_per_copy(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that each copy of the component got. SageMaker documents only the sum."""
        return self._metric("InvocationsPerCopy", "Sum", options)

    @_takes_options
    def metric_no_capacity_invocation_failures(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that failed because no copy existed ("Scale an endpoint to zero instances")."""
        return self._metric("NoCapacityInvocationFailures", "Sum", options)

    @_takes_options
    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of the vCPUs that a copy reserves, 0 to 100 percent."""
        return self._metric("CPUUtilizationNormalized", "Average", options, COMPONENTS)

    @_takes_options
    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of the memory that a copy reserves, in percent."""
        return self._metric("MemoryUtilizationNormalized", "Average", options, COMPONENTS)

    @_takes_options
    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of the GPUs that a copy reserves, 0 to 100 percent."""
        return self._metric("GPUUtilizationNormalized", "Average", options, COMPONENTS)

    @_takes_options
    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of the memory of the GPUs that a copy reserves, 0 to 100 percent."""
        return self._metric("GPUMemoryUtilizationNormalized", "Average", options, COMPONENTS)


class VariantMetrics(InvocationMetrics):
    """The metrics of one variant of an endpoint, as methods. SageMaker publishes each metric once a minute.

    Every method takes the options of a metric of the CDK, such as `statistic`, `period`, `label` and `color`.
    """

    @property
    @abstractmethod
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`."""

    @_takes_options
    def metric_invocations_per_instance(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests that each instance of the variant got. SageMaker documents only the sum."""
        return self._metric("InvocationsPerInstance", "Sum", options)

    @checked
    def metric_instance_count(
        self,
        *,
        account: str | None = None,
        color: str | None = None,
        label: str | None = None,
        period: Duration | None = None,
        region: str | None = None,
    ) -> cloudwatch.MathExpression:
        """The number of instances that answered. A period without requests has no value.

        SageMaker does not publish this number, but counts each request as 1 in `Invocations`, and as 1 divided by the
        number of active instances in `InvocationsPerInstance`. The quotient of the two is this number. An expression
        supports only the following options of a metric.

        Args:
            account: the account that publishes both metrics; by default the endpoint's.
            color: the colour in graphs.
            label: the text in graphs; by default "instances".
            period: the period of one datapoint; by default a minute.
            region: the region that publishes both metrics; by default the endpoint's.
        """
        from aws_cdk import aws_cloudwatch as cloudwatch

        options = MetricOptions(account=account, period=period, region=region)
        return cloudwatch.MathExpression(
            expression="invocations / perInstance",
            using_metrics={
                "invocations": self.metric_invocations(**options),
                "perInstance": self.metric_invocations_per_instance(**options),
            },
            color=color,
            label="instances" if label is None else label,
            period=Duration.minutes(1) if period is None else period,
        )

    # Utilization. The average is over the instances.

    @_takes_options
    def metric_cpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The sum of the utilization of all vCPUs of an instance, in percent. Four busy vCPUs have the sum 400."""
        return self._metric("CPUUtilization", "Average", options, INSTANCES)

    @_takes_options
    def metric_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of an instance's memory, 0 to 100 percent."""
        return self._metric("MemoryUtilization", "Average", options, INSTANCES)

    @_takes_options
    def metric_gpu_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The sum of the utilization of all GPUs of an instance, in percent. Four busy GPUs have the sum 400."""
        return self._metric("GPUUtilization", "Average", options, INSTANCES)

    @_takes_options
    def metric_gpu_memory_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The sum of the memory utilization of all GPUs of an instance, in percent. Four full GPUs have the sum 400."""
        return self._metric("GPUMemoryUtilization", "Average", options, INSTANCES)

    @_takes_options
    def metric_disk_utilization(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The utilization of an instance's disk, 0 to 100 percent."""
        return self._metric("DiskUtilization", "Average", options, INSTANCES)

    # The queue of an asynchronous endpoint.

    @_takes_options
    def metric_backlog_size(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that wait or are processed, for all variants together."""
        return self._queue_metric("ApproximateBacklogSize", "Maximum", options)

    @_takes_options
    def metric_backlog_size_per_instance(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The backlog size of an asynchronous endpoint, divided by the number of instances."""
        return self._queue_metric("ApproximateBacklogSizePerInstance", "Average", options)

    @_takes_options
    def metric_oldest_request_age(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The age of the oldest request to an asynchronous endpoint; in seconds."""
        return self._queue_metric("ApproximateAgeOfOldestRequest", "Maximum", options)

    @_takes_options
    def metric_failed_requests(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that failed. Their errors are below `failure_prefix`."""
        return self._metric("InvocationFailures", "Sum", options)

    @_takes_options
    def metric_expired_requests(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of requests to an asynchronous endpoint that expired in the queue. No container processes them."""
        return self._metric("ExpiredRequests", "Sum", options)

    def _queue_metric(self, metric_name: str, statistic: str, options: MetricOptions) -> cloudwatch.Metric:
        endpoint = MetricOptions(dimensions_map={"EndpointName": self.metric_dimensions["EndpointName"]})
        return self._metric(metric_name, statistic, endpoint | options)

    # The loading of models on a multi-model endpoint.

    @_takes_options
    def metric_loaded_model_count(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The number of archives that an instance has loaded. The sum counts an archive once for each instance."""
        return self._metric("LoadedModelCount", "Average", options, INSTANCES)

    @_takes_options
    def metric_model_cache_hit(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The share of requests (0 to 1) whose archive was already loaded. The sum is the number of such requests."""
        return self._metric("ModelCacheHit", "Average", options)

    @_takes_options
    def metric_model_loading_wait_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that a request waited until its archive was downloaded and loaded; in microseconds."""
        return self._metric("ModelLoadingWaitTime", "Average", options)

    @_takes_options
    def metric_model_downloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that the download of an archive took; in microseconds."""
        return self._metric("ModelDownloadingTime", "Average", options)

    @_takes_options
    def metric_model_loading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that the container took to load an archive; in microseconds."""
        return self._metric("ModelLoadingTime", "Average", options)

    @_takes_options
    def metric_model_unloading_time(self, **options: Unpack[MetricOptions]) -> cloudwatch.Metric:
        """The time that the container took to unload an archive; in microseconds. `SampleCount` counts the archives."""
        return self._metric("ModelUnloadingTime", "Average", options)


@checked
@dataclass(frozen=True, kw_only=True)
class EndpointMetrics(VariantMetrics):
    """The metrics of a variant, from the names of the endpoint and the variant.

    Use it for an endpoint in another stack, or for the rollback alarms of an endpoint. The endpoint refers to these
    alarms, so the alarms cannot get the name from the endpoint.

    Attributes:
        endpoint_name: the endpoint's name.
        variant_name: the variant's name.

    Raises:
        ConfigurationError: SageMaker would reject one of the names.
    """

    endpoint_name: str
    variant_name: str = "AllTraffic"

    def __post_init__(self) -> None:
        check_sagemaker_name(self.endpoint_name, "endpoint_name")
        check_sagemaker_name(self.variant_name, "variant_name")

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """The dimensions `EndpointName` and `VariantName`."""
        return {"EndpointName": self.endpoint_name, "VariantName": self.variant_name}


def of_instance_type(metric: cloudwatch.Metric, instance_type: str) -> cloudwatch.Metric:
    """A metric of a variant with instance pools, for only one instance type.

    "CloudWatch publishes these metrics with an InstanceType dimension" ("Monitor instance pools",
    realtime-endpoints-heterogeneous in SageMaker's developer guide).
    """
    return metric.with_(dimensions_map={**(metric.dimensions or {}), "InstanceType": instance_type})
