"""`EndpointVariant`: a variant of an endpoint, with its metrics and its scaling."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.hosting.metrics import VariantMetrics
from cdk_triton.hosting.variant import TritonVariant

__all__ = ["EndpointVariant"]


class EndpointVariant(Construct, VariantMetrics):
    """What `TritonEndpoint.variant` returns: a `TritonVariant` in its endpoint.

    Attributes:
        variant: what it runs.

    Args:
        scope: the endpoint.
        endpoint: its L1.
        variant: what it runs.
    """

    def __init__(self, scope: Construct, endpoint: sagemaker.CfnEndpoint, variant: TritonVariant) -> None:
        super().__init__(scope, f"Variant{variant.variant_name}")
        self.variant = variant
        self._endpoint = endpoint

    @property
    def metric_dimensions(self) -> Mapping[str, str]:
        """`EndpointName` and `VariantName`."""
        return {"EndpointName": self._endpoint.attr_endpoint_name, "VariantName": self.variant.variant_name}
