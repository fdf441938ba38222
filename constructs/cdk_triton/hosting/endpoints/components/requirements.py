"""Checks the resources that one copy of a component reserves."""

from __future__ import annotations

from typing import Final

from aws_cdk import Size, SizeRoundingBehavior

from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.literals import allowed_whole, is_number, is_whole
from cdk_triton.sagemaker import CopyRequirements, GpuInstance
from cdk_triton.sagemaker.limits import MIN_COPY_CPUS, MIN_COPY_MEMORY_MIB

__all__ = ["check_count", "copy_requirements", "memory_doubt"]

DOUBTFUL_GIB: Final = 12
"""The host kept at least this much when SageMaker rejected a copy: see `memory_doubt`."""


def copy_requirements(
    what: str, instance: GpuInstance, accelerators: int, memory: Size, cpus: float | None
) -> CopyRequirements:
    """The resources that a copy reserves.

    Args:
        what: the component's name in error messages.
        instance: the instance type that the copy runs on.
        accelerators: the number of whole GPUs.
        memory: the amount of host memory.
        cpus: the number of vCPUs. None: the copy reserves no vCPUs.

    Raises:
        ConfigurationError: a number is out of the range of SageMaker's API, or is more than an empty instance has.
    """
    check_count(f"accelerators of {what}", accelerators, 1, "because a GPU is not shared between copies or components")
    if memory.is_unresolved():
        raise ConfigurationError(
            f"memory of {what} is an unresolved token, but synth compares it with the memory of the instance: write "
            "the size itself"
        )
    mebibytes = memory.to_mebibytes(rounding=SizeRoundingBehavior.NONE)
    if mebibytes < MIN_COPY_MEMORY_MIB or mebibytes != int(mebibytes):
        raise ConfigurationError(
            f"memory of {what} is {mebibytes:g} MiB: SageMaker takes whole MiB, at least {MIN_COPY_MEMORY_MIB}"
        )
    if cpus is not None:
        reject_token(cpus, f"cpus of {what}")
        if not is_number(cpus) or cpus < MIN_COPY_CPUS:
            raise ConfigurationError(
                f"cpus of {what} is {quoted(cpus)}: use a number of vCPUs, at least {MIN_COPY_CPUS}, or omit cpus="
            )
    found = CopyRequirements(accelerators=accelerators, memory_mib=int(mebibytes), cpus=cpus or 0)
    if (excess := found.excess_over(instance)) is not None:
        raise ConfigurationError(
            f"a copy of {what} needs {excess} on one {instance.name}, and a copy runs on one instance: lower the "
            "number, or choose a larger instance type"
        )
    return found


def check_count(what: str, count: object, least: int, why: str) -> None:
    """Reject what is not a whole number that is known at synth.

    Args:
        what: what messages call it.
        count: the number.
        least: the least that it may be.
        why: the reason for `least`, as the end of a sentence.

    Raises:
        ConfigurationError: the count is not a whole number, or is below `least`.
    """
    reject_token(count, what)
    if not is_whole(count, least):
        raise ConfigurationError(f"{what} is {quoted(count)}: use {allowed_whole(count, least)}, {why}")


def memory_doubt(requirements: CopyRequirements, instance: GpuInstance) -> str | None:
    """Why SageMaker may reject a copy although its numbers fit the instance; None if no reason is known.

    According to one report, a copy on ml.g5.xlarge, which has 16 GiB, can reserve 1,024 MB but not 4,096 MB (the guide
    for `deploy_ic.py` of Hugging Face's skill `hf-cloud-sagemaker-deploy`, measured in July 2026). So the host keeps 12
    GiB or more. AWS's sample reserves 8,192 MB of the 32 GiB of ml.g5.2xlarge.
    """
    if instance.memory_gib is None or requirements.memory_mib < (instance.memory_gib - DOUBTFUL_GIB) * 1024:
        return None
    return (
        f"reserves {requirements.memory_mib} MiB of the {instance.memory_gib} GiB of {instance.name}, but the host "
        "keeps a part of the memory, and AWS does not document its size. According to one report, ml.g5.xlarge "
        "accepts a copy of 1 GiB but rejects a copy of 4 GiB with 'There is not enough hardware resources on the "
        "instances'. memory= reserves memory but does not limit the copy's use, so lower memory=, or acknowledge this "
        "if such a copy starts in your account"
    )
