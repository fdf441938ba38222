"""Computes how many instances of one type the copies of inference components need together.

A copy reserves whole GPUs, and vCPUs and memory beside them, on one instance (`ComputeResourceRequirements` of
InferenceComponentSpecification in SageMaker's API). A GPU belongs to one copy: the README of AWS's sample
`02-engines/Triton/deberta-tensorrt` in aws-samples/sagemaker-genai-hosting-examples reports that a copy gets "a whole
accelerator", and that two components cannot be on one ml.g5.2xlarge.

How SageMaker places copies is not public. Here the largest come first, each onto the first instance with room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdk_triton.sagemaker.instances import GpuInstance

__all__ = ["CopyRequirements", "instances_for"]

MIB_PER_GIB = 1024


@dataclass(frozen=True, order=True)
class CopyRequirements:
    """The resources that one copy of a component reserves; ordered by GPUs, then memory, then vCPUs.

    Attributes:
        accelerators: the number of whole GPUs.
        memory_mib: memory of the host, in MiB.
        cpus: the number of vCPUs; 0 reserves none.
    """

    accelerators: int
    memory_mib: int
    cpus: float = 0

    def excess_over(self, instance: GpuInstance) -> str | None:
        """The first resource that an instance lacks, such as `5 accelerators, but there are 4`; None if a copy fits."""
        if self.accelerators > instance.gpu_count:
            return f"{self.accelerators} accelerators, but there are {instance.gpu_count}"
        if self.cpus > instance.vcpu_count:
            return f"{self.cpus:g} cpus, but there are {instance.vcpu_count}"
        if instance.memory_gib is not None and self.memory_mib > instance.memory_gib * MIB_PER_GIB:
            return f"{self.memory_mib} MiB of memory, but there are {instance.memory_gib * MIB_PER_GIB} MiB"
        return None


class _FreeResources:
    def __init__(self, instance: GpuInstance) -> None:
        self._accelerators = instance.gpu_count
        self._cpus: float = instance.vcpu_count
        self._memory = None if instance.memory_gib is None else instance.memory_gib * MIB_PER_GIB

    def take(self, copy: CopyRequirements) -> bool:
        """Reserve what a copy needs, if it is free."""
        fits = copy.accelerators <= self._accelerators and copy.cpus <= self._cpus
        if not fits or (self._memory is not None and copy.memory_mib > self._memory):
            return False
        self._accelerators -= copy.accelerators
        self._cpus -= copy.cpus
        self._memory = None if self._memory is None else self._memory - copy.memory_mib
        return True


def instances_for(copies: Iterable[CopyRequirements], instance: GpuInstance) -> int:
    """How many instances of a type the copies need together. Each copy must fit an empty instance.

    Args:
        copies: the resources that each copy reserves.
        instance: the type.
    """
    used: list[_FreeResources] = []
    for copy in sorted(copies, reverse=True):
        if not any(free.take(copy) for free in used):
            fresh = _FreeResources(instance)
            if not fresh.take(copy):
                raise ValueError(f"a copy needs more than an empty {instance.name} has: {copy}")
            used.append(fresh)
    return len(used)
