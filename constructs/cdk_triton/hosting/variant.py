"""`TritonVariant`: a model on instances, as an endpoint takes it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from aws_cdk import Duration, Token
from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.model import ITritonModel
from cdk_triton.sagemaker.limits import MAX_NAME_LENGTH, MAX_TIMEOUT_SECONDS, MIN_TIMEOUT_SECONDS, NAME_PATTERN

__all__ = ["TritonVariant", "check_sagemaker_name", "is_token", "production_variant"]


@dataclass(frozen=True, kw_only=True)
class TritonVariant:
    """One production variant: a model on a number of instances, with its share of the requests.

    The instance type and the host AMI are those of the model's platform.

    Attributes:
        model: a `TritonModel` or `TritonMultiModel`.
        variant_name: its name, unique within the endpoint; callers may send it as `TargetVariant`.
        initial_instance_count: instances at first, at least 1.
        initial_weight: share of the requests that name no variant, relative to the other variants; 0 gets none.
        container_startup_timeout: how long an instance's container may take until it answers `/ping`, 60 to 3600
            seconds. None: SageMaker's default.
        model_download_timeout: how long the download and extraction of one archive may take, 60 to 3600 seconds. None:
            SageMaker's default.

    Raises:
        ConfigurationError: a value is out of its range.
    """

    model: ITritonModel
    variant_name: str = "AllTraffic"
    initial_instance_count: int = 1
    initial_weight: float = 1.0
    container_startup_timeout: Duration | None = None
    model_download_timeout: Duration | None = None

    def __post_init__(self) -> None:
        """Refuse what CreateEndpointConfig would refuse minutes later."""
        check_sagemaker_name(self.variant_name, "variant_name")
        count, weight = self.initial_instance_count, self.initial_weight
        if not (is_token(count) or (isinstance(count, int) and not isinstance(count, bool) and count >= 1)):
            raise ConfigurationError(
                f"initial_instance_count of variant {self.variant_name} is {count!r}: a real-time variant runs on a "
                "whole number of instances, at least 1"
            )
        if not (is_token(weight) or (math.isfinite(weight) and weight >= 0)):
            raise ConfigurationError(
                f"initial_weight of variant {self.variant_name} is {weight!r}: use 0 for no requests, or a positive "
                "number"
            )
        for name in ("container_startup_timeout", "model_download_timeout"):
            self._check_timeout(name)

    def _check_timeout(self, name: str) -> None:
        timeout: Duration | None = getattr(self, name)
        if timeout is None or timeout.is_unresolved():
            return
        seconds = timeout.to_seconds()
        if not MIN_TIMEOUT_SECONDS <= seconds <= MAX_TIMEOUT_SECONDS:
            raise ConfigurationError(
                f"{name} of variant {self.variant_name} is {seconds:g} seconds: SageMaker takes "
                f"{MIN_TIMEOUT_SECONDS} to {MAX_TIMEOUT_SECONDS}"
            )


def production_variant(variant: TritonVariant) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """The variant as an endpoint configuration writes it."""
    platform = variant.model.platform
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.variant_name,
        model_name=variant.model.model_name,
        instance_type=platform.instance_type,
        inference_ami_version=platform.inference_ami_version,
        initial_instance_count=variant.initial_instance_count,
        initial_variant_weight=variant.initial_weight,
        container_startup_health_check_timeout_in_seconds=_seconds(variant.container_startup_timeout),
        model_data_download_timeout_in_seconds=_seconds(variant.model_download_timeout),
    )


def is_token(number: float) -> bool:
    """Whether only the deployment knows the number. Infinity and NaN have no JSON and would end jsii's process."""
    return math.isfinite(number) and Token.is_unresolved(number)


def _seconds(duration: Duration | None) -> int | float | None:
    return None if duration is None else duration.to_seconds()


def check_sagemaker_name(name: str, what: str) -> None:
    """Refuse a name that SageMaker refuses.

    Raises:
        ConfigurationError: it does.
    """
    if Token.is_unresolved(name):
        return
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > MAX_NAME_LENGTH:
        raise ConfigurationError(
            f"{what} {name!r} is no name for SageMaker: use up to {MAX_NAME_LENGTH} letters and digits, with '-' only "
            "between them"
        )
