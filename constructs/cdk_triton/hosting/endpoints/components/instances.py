"""The instances of an endpoint with components: a variant without a model, whose instances SageMaker scales."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_sagemaker as sagemaker
from constructs import IConstruct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.components.requirements import check_count
from cdk_triton.hosting.endpoints.variants.capacity_reservations import reservation_property
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["VARIANT_NAME", "initial_count", "variant_of_components", "warn_about_zero"]

VARIANT_NAME: Final = "AllTraffic"

NO_INSTANCE_WARNING: Final = "cdk-triton:ScaleToZeroInstances"


def initial_count(path: str, least: int, most: int, initial: int | None) -> int:
    """The number of instances that the endpoint starts with.

    Args:
        path: the endpoint's path.
        least: the fewest instances.
        most: the most instances.
        initial: the number that the user gave; None: the fewest, but at least 1.

    Raises:
        ConfigurationError: a number is not a whole number or out of its range, or the numbers contradict each other.
    """
    check_count(f"min_instance_count of {path}", least, 0, "where 0 lets SageMaker remove all instances")
    check_count(f"max_instance_count of {path}", most, 1, "because components run on instances")
    if initial is not None:
        check_count(f"initial_instance_count of {path}", initial, 1, "because an endpoint needs an instance")
    first = max(1, least) if initial is None else initial
    if not least <= first <= most:
        raise ConfigurationError(
            f"{path} begins with {first} instances, but scales between min_instance_count {least} and "
            f"max_instance_count {most}: use an initial_instance_count within these limits"
        )
    return first


def variant_of_components(
    platform: ServingPlatform, initial: int, least: int, most: int, reservation_arn: str | None
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """A variant without a model, which lets the endpoint host components.

    A request goes to the copy with the fewest outstanding requests, as in AWS's samples.
    """
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=VARIANT_NAME,
        instance_type=platform.instance_type,
        inference_ami_version=platform.inference_ami_version,
        initial_instance_count=initial,
        managed_instance_scaling=sagemaker.CfnEndpointConfig.ManagedInstanceScalingProperty(
            status="ENABLED", min_instance_count=least, max_instance_count=most
        ),
        capacity_reservation_config=reservation_property(reservation_arn),
        routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy="LEAST_OUTSTANDING_REQUESTS"),
    )


def warn_about_zero(endpoint: IConstruct) -> None:
    """Warn about a minimum of 0 instances, which SageMaker does not accept everywhere."""
    Annotations.of(endpoint).add_warning_v2(
        NO_INSTANCE_WARNING,
        "min_instance_count is 0, which SageMaker rejects in some regions: 'Min instance count needs to be greater "
        "than 0 for enabled managed instance scaling' in eu-west-3, while us-east-1 accepts 0 "
        "(stdapi-ai/stdapi.ai#43, August 2026). Try `aws sagemaker create-endpoint-config`, which starts no "
        "instance, in your region, and acknowledge this if SageMaker accepts 0",
    )
