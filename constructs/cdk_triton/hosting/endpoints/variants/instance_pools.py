"""Instance pools: one variant on up to five instance types, each with the model that was built for its GPU.

SageMaker starts instances of the first type that has capacity ("Deploy to multiple instance types with instance pools"
in its developer guide, realtime-endpoints-heterogeneous, read in November 2026). Each pool can name a model of its own
(`ModelNameOverride`), which is how every GPU gets its own TensorRT plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from aws_cdk import Duration
from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.literals import literal_seconds
from cdk_triton.sagemaker.limits import MAX_INSTANCE_POOLS, MAX_PROVISION_SECONDS, MIN_PROVISION_SECONDS
from cdk_triton.triton import ModelRepository

__all__ = ["POOL_ROUTING", "check_pools", "check_provision_timeout", "instance_pools"]

POOL_ROUTING = "LEAST_OUTSTANDING_REQUESTS"
"""The routing strategy of a variant with pools: "LEAST_OUTSTANDING_REQUESTS (LOR) is required for capacity aware
instance pools" (03-features/capacity-aware-instance-pool/README.md of aws-samples/sagemaker-genai-hosting-examples,
80ee5eb). An example of the guide has no RoutingConfig."""


def check_pools(what: str, models: Sequence[ITritonModel], routing_strategy: str | None) -> None:
    """Reject models that cannot be the pools of one variant.

    Args:
        what: the variant, as a sentence names it.
        models: the pools, by priority; more than one.
        routing_strategy: the strategy that the variant was given.

    Raises:
        ConfigurationError: there are too many pools, or one is multi-model; two have the same instance type, or
            different images, repositories or limits for a request; or pools do not support the routing strategy.
    """
    if len(models) > MAX_INSTANCE_POOLS:
        raise ConfigurationError(
            f"{what} has {len(models) - 1} fallback_models, but SageMaker takes {MAX_INSTANCE_POOLS} instance pools, "
            f"and model= needs one of them: use at most {MAX_INSTANCE_POOLS - 1} fallback_models"
        )
    for model in models:
        if model.is_multi_model:
            raise ConfigurationError(
                f"{what} has fallback_models, but {model.node.path} is a TritonMultiModel, and SageMaker offers "
                "instance pools to single models only: serve one ensemble with a TritonModel for each instance type, "
                "or remove fallback_models"
            )
    for first, second in combinations(models, 2):
        _check_pair(what, first, second)
    if routing_strategy not in (None, POOL_ROUTING) and not has_token(routing_strategy):
        raise ConfigurationError(
            f"routing_strategy of {what} is {routing_strategy!r}, but a variant with fallback_models needs "
            f"{POOL_ROUTING}, because its instances differ in speed: remove routing_strategy"
        )


def _check_pair(what: str, first: ITritonModel, second: ITritonModel) -> None:
    one, other = first.platform, second.platform
    if one.instance_type == other.instance_type:
        raise ConfigurationError(
            f"{what} has two models for {one.instance_type}, {first.node.path} and {second.node.path}, but SageMaker "
            "takes one instance pool for each instance type: give each model a platform with its own instance_type"
        )
    if one.image_identity != other.image_identity:
        raise ConfigurationError(
            f"{what} would serve {one.image_identity} on {one.instance_type} and {other.image_identity} on "
            f"{other.instance_type}, so its answers depend on which instances are free: give all platforms the "
            "same release or image"
        )
    if (repositories := (_repository(first), _repository(second))) and None not in repositories:
        here, there = repositories
        if here != there:
            raise ConfigurationError(
                f"{what} would serve the repository {here} on {one.instance_type} and {there} on "
                f"{other.instance_type}, so its answers depend on which instances are free: give all models the "
                "same repository; their recipes may differ"
            )
    if (limits := (getattr(first, "max_payload", None), getattr(second, "max_payload", None)))[0] != limits[1]:
        here, there = (f"{limit:,} bytes" if isinstance(limit, int) else "Triton's own limit" for limit in limits)
        raise ConfigurationError(
            f"{what} would take requests up to {here} on {one.instance_type} and up to {there} on "
            f"{other.instance_type}, so the limit depends on which instances are free: give all models the same "
            "max_payload"
        )


def _repository(model: ITritonModel) -> str | None:
    """The directory of a model's repository; None for a model without one, such as an imported model."""
    repository = getattr(model, "repository", None)
    return str(repository.root.resolve()) if isinstance(repository, ModelRepository) else None


def check_provision_timeout(what: str, timeout: Duration | None) -> None:
    """Reject a timeout that SageMaker does not accept.

    Raises:
        ConfigurationError: the timeout is out of its range, or not a whole number of seconds.
    """
    seconds = literal_seconds(timeout)
    if seconds is None or (MIN_PROVISION_SECONDS <= seconds <= MAX_PROVISION_SECONDS and seconds == int(seconds)):
        return
    raise ConfigurationError(
        f"instance_provision_timeout of {what} is {seconds:g} seconds: SageMaker takes whole seconds, "
        f"{MIN_PROVISION_SECONDS} to {MAX_PROVISION_SECONDS}"
    )


def instance_pools(models: Sequence[ITritonModel]) -> list[sagemaker.CfnEndpointConfig.InstancePoolProperty] | None:
    """The pools in the form of an endpoint configuration; None for a variant with one model.

    The variant itself names the first model.
    """
    if len(models) == 1:
        return None
    return [
        sagemaker.CfnEndpointConfig.InstancePoolProperty(
            instance_type=model.platform.instance_type,
            priority=priority,
            model_name_override=None if priority == 1 else model.model_name,
        )
        for priority, model in enumerate(models, start=1)
    ]
