"""Which metrics SageMaker publishes of a variant: facts. What to watch, and when to worry, is `monitoring`'s opinion.

Source: "Amazon SageMaker AI metrics in Amazon CloudWatch" in SageMaker's developer guide.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["VariantMetrics"]

INVOCATIONS = "AWS/SageMaker"
"""The namespace of what callers see."""

INSTANCES = "/aws/sagemaker/Endpoints"
"""The namespace of what instances use."""


class VariantMetrics:
    """The metrics of one variant of an endpoint, as methods; SageMaker publishes each once a minute."""

    @property
    @abstractmethod
    def metric_dimensions(self) -> Mapping[str, str]:
        """`EndpointName` and `VariantName`."""

    def metric(
        self, metric_name: str, *, namespace: str = INVOCATIONS, statistic: str = "Sum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Any metric of the variant.

        Args:
            metric_name: as SageMaker calls it.
            namespace: where it is.
            statistic: as CloudWatch writes it, such as `Sum` or `p99`.
            period: of one datapoint; by default a minute.
        """
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=metric_name,
            dimensions_map=self.metric_dimensions,
            statistic=statistic,
            period=Duration.minutes(1) if period is None else period,
        )

    def metric_invocations(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """How many requests the variant got."""
        return self.metric("Invocations", statistic=statistic, period=period)
