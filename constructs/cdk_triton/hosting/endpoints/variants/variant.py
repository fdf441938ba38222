"""`TritonVariant`: a model on a number of instances, for an endpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from aws_cdk import Duration, Size, SizeRoundingBehavior
from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton._checked import checked
from cdk_triton._tokens import has_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.capacity_reservations import check_reservation, reservation_property
from cdk_triton.hosting.endpoints.variants.instance_pools import (
    POOL_ROUTING,
    check_pools,
    check_provision_timeout,
    instance_pools,
)
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.literals import allowed_whole, is_number, is_token, is_whole, literal_seconds
from cdk_triton.hosting.naming.service_names import check_sagemaker_name
from cdk_triton.sagemaker import common_host_ami, instance_storage
from cdk_triton.sagemaker.limits import (
    MAX_TIMEOUT_SECONDS,
    MAX_VOLUME_GB,
    MIN_TIMEOUT_SECONDS,
    MIN_VOLUME_GB,
)
from cdk_triton.sagemaker.timeouts import START_SECONDS, start_timeout_seconds

__all__ = [
    "RoutingStrategy",
    "TritonVariant",
    "default_timeouts",
    "production_variant",
]

RoutingStrategy = Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"]
"""How SageMaker chooses among the instances of a variant (API reference, ProductionVariantRoutingConfig; its other
strategies are for prompts of language models)."""


@checked
@dataclass(frozen=True, kw_only=True)
class TritonVariant:
    """One variant: a model on a number of instances, with its share of the requests.

    The instance type and the host AMI come from the model's platform.

    With `fallback_models`, the variant has instance pools: SageMaker starts instances of the first platform that has
    capacity, with the model of that platform. All models must have the same image, repository directory and
    `max_payload`. The library does not know the repository of an imported model or of your own construct, so it does
    not compare this repository. The variant has one host AMI for all models. SageMaker sends a request to the instance
    with the fewest outstanding requests.

    Attributes:
        model: a `TritonModel` or `TritonMultiModel`. With `fallback_models`, it is the first instance pool.
        fallback_models: up to four single models for other instance types, in order of preference. SageMaker uses a
            type if the types before it have no capacity.
        variant_name: the variant's name, unique within the endpoint. Callers can send it as `TargetVariant`.
        initial_instance_count: the number of instances that the variant starts with, at least 1.
        initial_weight: the share of the requests that name no variant, relative to the other variants' weights. With
            weight 0, the variant gets none of these requests. For a shadow variant: the share of the requests that
            SageMaker copies to it, relative to the production variant's weight.
        container_startup_timeout: how long an instance's container may take until it responds to `/ping`, 60 to 3600
            seconds. None: a timeout that fits the model's size, or SageMaker's 8 minutes for a model of up to 1 GB; at
            least the `load_timeout` of the repository's rehearsal.
        model_download_timeout: how long the download and extraction of one archive may take, 60 to 3600 seconds. None:
            3600 seconds for a model of more than 40 GB, otherwise SageMaker's default.
        volume_size: the size of each instance's EBS volume, 1 to 512 GiB. Allowed only for instance types without local
            disks.
        routing_strategy: how SageMaker chooses the instance for a request. "LEAST_OUTSTANDING_REQUESTS" suits requests
            of differing duration, and is the only choice with `fallback_models`. None: this strategy with
            `fallback_models`, otherwise SageMaker's default, "RANDOM" ("Minimize real-time inference latency by using
            Amazon SageMaker routing strategies", AWS Machine Learning Blog).
        capacity_reservation_arn: the ARN of a training plan for endpoints, or of an ML reservation, of the same
            instance type. All instances of the variant start in the reservation, also those that an update or a
            scale-out adds. If the reservation is full, further instances fail to start. When a training plan ends,
            requests fail. Not allowed with `fallback_models`, because a reservation has one instance type.
        instance_provision_timeout: how long SageMaker looks for instances, over all instance types together, 300 to
            3600 seconds. After that, the deployment or the change of the instance count fails. The model download and
            the container start do not count. None: SageMaker's default, which AWS does not document.

    Raises:
        ConfigurationError: a value is out of its range, or SageMaker rejects a volume size for an instance type; the
            fallback models do not fit the model or the routing strategy, or no host AMI suits all GPUs;
            `capacity_reservation_arn` is not the ARN of a reservation, or is given together with `fallback_models`.
    """

    model: ITritonModel
    variant_name: str = "AllTraffic"
    initial_instance_count: int = 1
    initial_weight: float = 1.0
    container_startup_timeout: Duration | None = None
    model_download_timeout: Duration | None = None
    volume_size: Size | None = None
    routing_strategy: RoutingStrategy | None = None
    capacity_reservation_arn: str | None = None
    fallback_models: Sequence[ITritonModel] = ()
    instance_provision_timeout: Duration | None = None

    def __post_init__(self) -> None:
        check_sagemaker_name(self.variant_name, "variant_name")
        count, weight = self.initial_instance_count, self.initial_weight
        if not is_whole(count, 1):
            raise ConfigurationError(
                f"initial_instance_count of variant {self.variant_name!r} is {quoted(count)}: use "
                f"{allowed_whole(count, 1)}; only scaling takes an asynchronous endpoint to zero instances"
            )
        if not (is_token(weight) or (is_number(weight) and weight >= 0)):
            raise ConfigurationError(
                f"initial_weight of variant {self.variant_name!r} is {weight!r}: use 0 for no requests, or a positive "
                "number"
            )
        for name in ("container_startup_timeout", "model_download_timeout"):
            self._check_timeout(name)
        object.__setattr__(self, "fallback_models", tuple(self.fallback_models))
        self._check_volume_size()
        self._check_routing_strategy()
        if self.capacity_reservation_arn is not None:
            check_reservation(
                f"capacity_reservation_arn of variant {self.variant_name!r}", self.capacity_reservation_arn
            )
        check_provision_timeout(f"variant {self.variant_name!r}", self.instance_provision_timeout)
        if self.fallback_models:
            check_pools(f"variant {self.variant_name!r}", self.models, self.routing_strategy)
            self._host_ami()  # or a sentence that no AMI suits all of them
            if self.capacity_reservation_arn is not None:
                raise ConfigurationError(
                    f"variant {self.variant_name!r} has fallback_models and a capacity_reservation_arn, but a "
                    "reservation has one instance type, and SageMaker starts no instance outside the reservation: "
                    "remove fallback_models or capacity_reservation_arn"
                )

    @property
    def models(self) -> tuple[ITritonModel, ...]:
        """Every model that may serve the variant: `model`, then the `fallback_models`."""
        return (self.model, *self.fallback_models)

    def _host_ami(self) -> str | None:
        return common_host_ami(f"variant {self.variant_name!r}", [model.platform for model in self.models])

    def _check_timeout(self, name: str) -> None:
        what = f"{name} of variant {self.variant_name!r}"
        seconds = literal_seconds(getattr(self, name))
        if seconds is None or (MIN_TIMEOUT_SECONDS <= seconds <= MAX_TIMEOUT_SECONDS and seconds == int(seconds)):
            return
        raise ConfigurationError(
            f"{what} is {seconds:g} seconds: SageMaker takes whole seconds, {MIN_TIMEOUT_SECONDS} to "
            f"{MAX_TIMEOUT_SECONDS}"
        )

    def _check_volume_size(self) -> None:
        if self.volume_size is None:
            return
        for platform in (model.platform for model in self.models):
            if instance_storage(platform.instance).takes_volume_size is False:
                raise ConfigurationError(
                    f"variant {self.variant_name!r} has a volume_size, but SageMaker rejects volume sizes for "
                    f"{platform.instance_type}, which keeps models on its own NVMe disks: remove volume_size"
                )
        if self.volume_size.is_unresolved():
            return
        size = self.volume_size.to_gibibytes(rounding=SizeRoundingBehavior.NONE)
        if not (MIN_VOLUME_GB <= size <= MAX_VOLUME_GB and size == int(size)):
            raise ConfigurationError(
                f"volume_size of variant {self.variant_name!r} is {size:g} GiB: use a whole number, "
                f"{MIN_VOLUME_GB} to {MAX_VOLUME_GB}"
            )

    def _check_routing_strategy(self) -> None:
        strategy, known = self.routing_strategy, get_args(RoutingStrategy)
        if strategy is None or (isinstance(strategy, str) and (strategy in known or has_token(strategy))):
            return
        raise ConfigurationError(
            f"routing_strategy of variant {self.variant_name!r} is {strategy!r}: use {' or '.join(known)}, or remove "
            "it for SageMaker's default"
        )


def production_variant(variant: TritonVariant) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """The variant or shadow in the form of an endpoint configuration."""
    pools, timeouts = instance_pools(variant.models), default_timeouts(variant.models)
    strategy = POOL_ROUTING if pools is not None and variant.routing_strategy is None else variant.routing_strategy
    provision = variant.instance_provision_timeout
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.variant_name,
        model_name=variant.model.model_name,
        instance_type=variant.model.platform.instance_type if pools is None else None,
        instance_pools=pools,
        variant_instance_provision_timeout_in_seconds=None if provision is None else provision.to_seconds(),
        inference_ami_version=variant._host_ami(),
        initial_instance_count=variant.initial_instance_count,
        initial_variant_weight=variant.initial_weight,
        container_startup_health_check_timeout_in_seconds=_seconds(variant.container_startup_timeout, timeouts[0]),
        model_data_download_timeout_in_seconds=_seconds(variant.model_download_timeout, timeouts[1]),
        volume_size_in_gb=None if variant.volume_size is None else variant.volume_size.to_gibibytes(),
        routing_config=None
        if strategy is None
        else sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy=strategy),
        capacity_reservation_config=reservation_property(variant.capacity_reservation_arn),
    )


LONG_DOWNLOAD_BYTES = 40_000_000_000


def default_timeouts(models: Sequence[ITritonModel]) -> tuple[int | None, int | None]:
    """Seconds for the start of the container and for the download, that fit each of some models.

    The start: see `start_timeout_seconds`. Up to 1 GB, SageMaker's default is enough, and nothing is set. Models that a
    rehearsal gives longer to load (`Rehearsal.load_timeout`) get as long on the endpoint, or they would pass and then
    fail there.

    The download: AWS recommends a higher timeout from 40 GB on and does not document the default ("SageMaker AI
    endpoint parameters for large model inference"). So from 40 GB on, the timeout is SageMaker's maximum. A timeout
    that is too long only delays the report of a failure.

    The size of a multi-model endpoint is 0, because an instance starts without a model. So no ensemble changes the
    timeouts, and thereby the endpoint.

    Returns:
        Both timeouts, each None if SageMaker's default fits.
    """
    size = max(model.size for model in models)
    rehearsed = [seconds for model in models if (seconds := getattr(model, "_load_timeout", None)) is not None]
    start = max(start_timeout_seconds(size), *map(math.ceil, rehearsed), 0)
    return None if start == START_SECONDS else start, MAX_TIMEOUT_SECONDS if size > LONG_DOWNLOAD_BYTES else None


def _seconds(given: Duration | None, default: int | None) -> int | float | None:
    return default if given is None else given.to_seconds()
