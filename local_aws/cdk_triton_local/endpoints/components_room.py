"""The instances below inference components: whether copies have room, and how many instances they need.

SageMaker adds and removes instances by itself between the limits of ManagedInstanceScaling; here they come and go at
once, because one machine has them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_triton.sagemaker import CopyRequirements, gpu_instance, instances_for

__all__ = ["check_components", "most_instances", "room_for", "settle_instances"]


def check_components(request: Mapping[str, Any]) -> str | None:
    """The error of a configuration that has a variant without a model; None if it is correct.

    That the role is required was measured (stdapi-ai/stdapi.ai#43); the text is ours.
    """
    variants = request.get("ProductionVariants") or []
    without = [each for each in variants if "ModelName" not in each and "ServerlessConfig" not in each]
    if not without:
        return None
    if len(variants) > 1:
        return "The local AWS serves endpoint configurations of one variant without a model."
    if "ExecutionRoleArn" not in request:
        return (
            "ExecutionRoleArn is required for an endpoint configuration with a variant that hosts inference components."
        )
    return None


def most_instances(variant: Mapping[str, Any], running: int, free: int | None) -> int:
    """How many instances a variant can have: at most its limit, and at most those that it has and those that are free.

    Args:
        variant: the variant in the endpoint configuration.
        running: the number of instances that it has.
        free: the number of further instances of its type that are free; None for no limit.
    """
    _, most = _limits(variant)
    return most if free is None else min(most, running + free)


def room_for(copies: Sequence[Mapping[str, Any]], instance_type: str, instances: int) -> bool:
    """Whether all copies fit on this number of instances.

    Args:
        copies: for each copy, the specification of its component.
        instance_type: the type of the instances.
        instances: their number.
    """
    instance = gpu_instance(instance_type)
    wanted = [_requirements(copy) for copy in copies]
    if any(each.excess_over(instance) is not None for each in wanted):
        return False
    return instances_for(wanted, instance) <= instances


def settle_instances(endpoint: Any, variant: Mapping[str, Any], copies: Sequence[Mapping[str, Any]]) -> None:
    """Give the variant of moto's endpoint as many instances as its copies need, within its limits."""
    least, _ = _limits(variant)
    needed = instances_for([_requirements(copy) for copy in copies], gpu_instance(variant["InstanceType"]))
    for summary in endpoint.production_variants:
        summary["DesiredInstanceCount"] = summary["CurrentInstanceCount"] = max(least, needed)


def _limits(variant: Mapping[str, Any]) -> tuple[int, int]:
    scaling = variant.get("ManagedInstanceScaling") or {}
    initial = variant.get("InitialInstanceCount", 1)
    if scaling.get("Status") != "ENABLED":
        return initial, initial
    return scaling.get("MinInstanceCount", initial), scaling.get("MaxInstanceCount", initial)


def _requirements(specification: Mapping[str, Any]) -> CopyRequirements:
    asked = specification["ComputeResourceRequirements"]
    return CopyRequirements(
        accelerators=int(asked.get("NumberOfAcceleratorDevicesRequired", 0)),
        memory_mib=int(asked["MinMemoryRequiredInMb"]),
        cpus=float(asked.get("NumberOfCpuCoresRequired", 0)),
    )
