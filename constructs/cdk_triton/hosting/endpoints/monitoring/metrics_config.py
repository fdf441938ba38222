"""`MetricsConfig`: what SageMaker publishes about an endpoint in addition to its standard metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Annotations, Duration
from aws_cdk import aws_sagemaker as sagemaker
from constructs import IConstruct

from cdk_triton._checked import checked
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.literals import literal_seconds
from cdk_triton.sagemaker.limits import METRIC_FREQUENCIES

__all__ = ["MetricsConfig"]

FREQUENCY_WARNING = "cdk-triton:MetricsEveryFewMinutes"

MINUTE = 60
"""The period of most alarms of `monitor()` and of the metrics of scaling policies."""


@checked
@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """SageMaker's `MetricsConfig`. This library's dashboard, alarms and scaling work without it.

    Source: API reference of MetricsConfig, and "Getting started with detailed observability" in SageMaker's developer
    guide, read in November 2026.

    With detailed observability, SageMaker also scrapes `/metrics` on the container's port 8080, where Triton listens
    for inference requests and rejects the scrape with status 400. Triton's own metrics
    (`ContainerEnvironment.allow_metrics`) are on port 8002, which is not reachable from outside the container. Your own
    image can run a proxy on port 8080 that passes `/metrics` to port 8002, and everything else to port 9080, where
    Triton listens with `ContainerEnvironment(port=9080, allow_metrics=True)`.

    Attributes:
        detailed_observability: whether SageMaker publishes metrics of each GPU and host, for PromQL and the SageMaker
            AI Insights dashboard. CloudWatch bills them by volume. SageMaker also publishes them for an endpoint
            configuration without `MetricsConfig` that was created in or after June 2026.
        enhanced_metrics: whether SageMaker also publishes the standard metrics by instance and GPU, with the dimensions
            `InstanceId` and `AcceleratorId`.
        publish_frequency: how often SageMaker publishes metrics of utilization, and of invocations if
            `enhanced_metrics` is on: 10 or 30 seconds, or 1, 2, 3, 4 or 5 minutes. None: SageMaker's default, 1 minute.
            Without `enhanced_metrics`, SageMaker publishes metrics of invocations every minute.

    Raises:
        ConfigurationError: SageMaker does not support the `publish_frequency`.
    """

    detailed_observability: bool = True
    enhanced_metrics: bool = False
    publish_frequency: Duration | None = None

    def __post_init__(self) -> None:
        """The schema in CloudFormation takes any number, but CreateEndpointConfig does not."""
        seconds = literal_seconds(self.publish_frequency)
        if seconds is not None and seconds not in METRIC_FREQUENCIES:
            *others, last = METRIC_FREQUENCIES
            raise ConfigurationError(
                f"publish_frequency of MetricsConfig is {seconds:g} seconds: SageMaker takes "
                f"{', '.join(map(str, others))} or {last}"
            )

    def _rendered(self) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty:
        return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
            enable_detailed_observability=self.detailed_observability,
            enable_enhanced_metrics=self.enhanced_metrics,
            metric_publish_frequency_in_seconds=None
            if self.publish_frequency is None
            else self.publish_frequency.to_seconds(),
        )

    def _warn(self, construct: IConstruct) -> None:
        """Warn if metrics are published less often than alarms and scaling policies evaluate them."""
        seconds = literal_seconds(self.publish_frequency)
        if seconds is None or seconds <= MINUTE:
            return
        which = "utilization and invocations" if self.enhanced_metrics else "utilization"
        Annotations.of(construct).add_warning_v2(
            FREQUENCY_WARNING,
            f"publish_frequency is {seconds / MINUTE:g} minutes, so alarms and scaling policies that evaluate the "
            f"metrics of {which} each minute find no data in most minutes, and react late or never. Use one minute or "
            "less, give your alarms longer periods, or acknowledge this",
        )
