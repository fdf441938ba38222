"""`MetricsConfig`: what SageMaker publishes of an endpoint beside its standard metrics."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton.hosting._cdk.arguments import checked

__all__ = ["MetricsConfig"]


@checked
@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """SageMaker's `MetricsConfig`. Dashboard, alarms and scaling of this library need none of it.

    Source: API reference of MetricsConfig, and "Getting started with detailed observability" in SageMaker's developer
    guide, read in November 2026.

    With detailed observability SageMaker also scrapes `/metrics` of the container's port 8080. Triton listens there for
    requests, and answers this one with 400; its own metrics have port 8002 (`ContainerEnvironment.allow_metrics`),
    which nothing outside the container reaches. The guide's page on monitoring says how an image of your own brings the
    two together.

    Attributes:
        detailed_observability: metrics of each GPU and host, for PromQL and the SageMaker AI Insights dashboard;
            CloudWatch bills them by volume. SageMaker does it where nothing is said (endpoint configurations made since
            June 2026).
        enhanced_metrics: the standard metrics by instance and GPU as well (dimensions `InstanceId`, `AcceleratorId`).
    """

    detailed_observability: bool = True
    enhanced_metrics: bool = False

    def _rendered(self) -> sagemaker.CfnEndpointConfig.MetricsConfigProperty:
        """As an endpoint configuration writes it."""
        return sagemaker.CfnEndpointConfig.MetricsConfigProperty(
            enable_detailed_observability=self.detailed_observability, enable_enhanced_metrics=self.enhanced_metrics
        )
