"""The configuration of an endpoint: one `AWS::SageMaker::EndpointConfig` of its variants and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.hosting.access.keys import key_arn_for_service
from cdk_triton.hosting.endpoints.asynchronous.storage import AsyncStorage, async_property
from cdk_triton.hosting.endpoints.data_capture import DataCapture, capture_property
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant, production_variant
from cdk_triton.hosting.endpoints.variants.variant_set import acknowledge_local_disks

if TYPE_CHECKING:  # slow to import, and rarely needed
    from aws_cdk import aws_kms as kms

    from cdk_triton.hosting.endpoints.monitoring.metrics_config import MetricsConfig

__all__ = ["endpoint_config"]


def endpoint_config(
    endpoint: Construct,
    *,
    variants: Sequence[TritonVariant],
    shadow: TritonVariant | None,
    encryption_key: kms.IKey | None,
    metrics_config: MetricsConfig | None,
    data_capture: DataCapture | None,
    storage: AsyncStorage | None,
) -> sagemaker.CfnEndpointConfig:
    """Create the configuration of an endpoint, its child `Config`.

    Args:
        endpoint: the endpoint.
        variants: see `TritonEndpoint`.
        shadow: see `TritonEndpoint`.
        encryption_key: see `TritonEndpoint`.
        metrics_config: see `TritonEndpoint`.
        data_capture: see `TritonEndpoint`.
        storage: the bucket and topics of an asynchronous endpoint, or None.
    """
    made = sagemaker.CfnEndpointConfig(
        endpoint,
        "Config",
        production_variants=[production_variant(variant) for variant in variants],
        shadow_production_variants=None if shadow is None else [production_variant(shadow)],
        kms_key_id=None if encryption_key is None else key_arn_for_service(encryption_key),
        metrics_config=None if metrics_config is None else metrics_config._rendered(),
        data_capture_config=None if data_capture is None else capture_property(data_capture),
        async_inference_config=async_property(storage),
    )
    acknowledge_local_disks(made, variants if shadow is None else (*variants, shadow))
    return made
