"""What the checks know of the machine that will serve.

Protocols, because this room is below the one that knows SageMaker: `cdk_triton.ServingPlatform` is a `Platform`.
"""

from __future__ import annotations

from typing import Final, Protocol

from cdk_triton._arguments import has_attribute, one

__all__ = ["PLATFORM", "Instance", "Platform"]

PLATFORM: Final = one(
    has_attribute("release", "instance_type"),
    "use a ServingPlatform, such as ServingPlatform(release='25.09', instance_type='ml.g5.2xlarge')",
)
"""As an argument."""


class Instance(Protocol):
    """An instance type with NVIDIA GPUs; `cdk_triton.sagemaker.GpuInstance` is one."""

    @property
    def gpu(self) -> str:
        """The GPU's name, for example `NVIDIA A10G`."""

    @property
    def compute_capability(self) -> str:
        """The GPU's compute capability, for example `8.6`."""

    @property
    def gpu_count(self) -> int | None:
        """GPUs of one instance, or None where no source says how many there are."""

    @property
    def multi_model_listed(self) -> bool:
        """Whether AWS lists the type for multi-model endpoints with GPUs."""


class Platform(Protocol):
    """Release and instance."""

    @property
    def release(self) -> str | None:
        """The Triton release, for example `25.09`; None where an own image does not say."""

    @property
    def image(self) -> str | None:
        """The image of one's own that serves instead of SageMaker's, or None."""

    @property
    def instance_type(self) -> str:
        """The SageMaker instance type, for example `ml.g5.2xlarge`."""

    @property
    def instance(self) -> Instance:
        """The facts about that type."""
