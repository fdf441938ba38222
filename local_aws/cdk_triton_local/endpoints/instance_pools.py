"""Chooses the instances of a variant: of its one type, or of the first of its instance pools that has capacity.

Source: "Deploy to multiple instance types with instance pools" (realtime-endpoints-heterogeneous in SageMaker's
developer guide), and the shape InstancePool of botocore 1.44.5. SageMaker looks for instances until
`VariantInstanceProvisionTimeoutInSeconds` has passed; here a deployment fails at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Placement", "changed_pools", "instance_types", "model_names", "place", "rejection"]

_ROUTING = "LEAST_OUTSTANDING_REQUESTS"

NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry using a "
    "different ML instance type."
)
"""SageMaker's FailureReason (aws/deep-learning-containers#6673; its second sentence is in
DIAGNijmegen/rse-grand-challenge#2631)."""


@dataclass(frozen=True)
class Placement:
    """The instances of a variant.

    Attributes:
        instance_type: the type of the pool that the server represents, which is the first with an instance.
        model_name: the model of that pool.
        pools: as DescribeEndpoint reports them (InstancePoolSummary); None without pools.
        shortage: why there are too few instances; None if there are enough.
        reason: why it is not the first pool; empty if it is.
    """

    instance_type: str
    model_name: str
    pools: list[dict[str, Any]] | None
    shortage: str | None
    reason: str


def rejection(variant: Mapping[str, Any]) -> str | None:
    """Why CreateEndpointConfig rejects a variant with instance pools; None if it accepts it.

    That they need this routing strategy is in the README of AWS's sample (03-features/capacity-aware-instance-pool of
    aws-samples/sagemaker-genai-hosting-examples, 80ee5eb), though an example of the guide has none. The texts are not
    the service's. The number of pools and the range of priorities are those of the shapes, which are checked before.
    """
    if "InstancePools" not in variant:
        return None
    what, pools = f"Variant {variant['VariantName']}", variant["InstancePools"]
    priorities = [pool["Priority"] for pool in pools]
    types = [pool["InstanceType"] for pool in pools]
    if "InstanceType" in variant:
        return f"{what} has InstancePools and InstanceType; specify one of them."
    if len(set(priorities)) < len(priorities):
        return f"{what} has InstancePools with the priorities {priorities}; each pool needs its own."
    if len(set(types)) < len(types):
        return f"{what} has several InstancePools of one InstanceType."
    if (strategy := variant.get("RoutingConfig", {}).get("RoutingStrategy")) != _ROUTING:
        found = "no RoutingStrategy" if strategy is None else f"the RoutingStrategy {strategy}"
        return f"{what} has InstancePools and {found}; InstancePools need {_ROUTING}."
    return None


def model_names(variant: Mapping[str, Any]) -> list[str]:
    """The models of a variant, by the priority of their pools."""
    return [pool.get("ModelNameOverride", variant.get("ModelName", "")) for pool in _pools(variant)]


def instance_types(variant: Mapping[str, Any]) -> str:
    """The instance types of a variant as one text, for comparisons and messages."""
    return ", ".join(str(pool["InstanceType"]) for pool in _pools(variant))


def place(variant: Mapping[str, Any], count: int, capacity: Callable[[str], int | None]) -> Placement:
    """Take instances from the pools by priority, from each as many as it has.

    Args:
        variant: the variant in an endpoint configuration.
        count: the number of instances to place.
        capacity: how many instances of a type are free; None: no limit.
    """
    pools, counts, lacking = _pools(variant), list[int](), list[str]()
    for pool in pools:
        missing, free = count - sum(counts), capacity(pool["InstanceType"])
        counts.append(missing if free is None else min(missing, free))
        if counts[-1] < missing:
            lacking.append(f"{pool['InstanceType']} has {free} instances free")
    reason = f"{', '.join(lacking)} (cdk-triton local capacity)"
    used = next((number for number, each in enumerate(counts) if each), 0)
    reported = [
        {"InstanceType": pool["InstanceType"], "CurrentInstanceCount": each}
        for pool, each in zip(pools, counts, strict=True)
    ]
    return Placement(
        instance_type=pools[used]["InstanceType"],
        model_name=model_names(variant)[used],
        pools=reported if "InstancePools" in variant else None,
        shortage=f"{NO_CAPACITY} [{reason}]" if sum(counts) < count else None,
        reason=f"because {reason}" if used else "",
    )


def changed_pools(pools: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """The pools of a variant whose instance count changes.

    Instances are added to the pool that serves, whatever the capacity, and "fallback instances are released first".
    """
    changed = [{**pool} for pool in pools]
    added = count - sum(pool["CurrentInstanceCount"] for pool in changed)
    if added > 0:
        first = next((pool for pool in changed if pool["CurrentInstanceCount"]), changed[0])
        first["CurrentInstanceCount"] += added
        return changed
    for pool in reversed(changed):
        taken = min(-added, pool["CurrentInstanceCount"])
        pool["CurrentInstanceCount"] -= taken
        added += taken
    return changed


def _pools(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By priority; a variant without pools counts as one."""
    if "InstancePools" not in variant:
        return [{"InstanceType": variant.get("InstanceType", "")}]
    return sorted(variant["InstancePools"], key=lambda pool: int(pool["Priority"]))
