"""Chooses the host AMI (`InferenceAmiVersion`) for an image and a GPU: the host's NVIDIA driver must support both.

The names and drivers are in the SageMaker service model of botocore 1.44.5. Which AMI suits which CUDA version and
which GPU is derived from these reports:

* An endpoint of 25.04 (CUDA 12.9) on the default host had driver 470 and failed (aws/deep-learning-containers#4990).
* Images of CUDA 12.8 and 12.9 failed on the host of CUDA 13. AWS's own tests put each image onto the AMI of its
  major version of CUDA (aws/deep-learning-containers#6187, and `INFERENCE_AMI_VERSION_CU12` in its tests: "the default
  CU13 AMI causes a zero-log CannotStartContainerError").
* AWS's sample for `ml.g7e.12xlarge` puts an image of CUDA 12.9 onto the host of CUDA 13
  (aws-samples/sagemaker-genai-hosting-examples, 01-models/black-forest-labs/FLUX.2-dev/README.md).
* The default host has driver 470 (CUDA 11.4) on ml.p4d, ml.p4de, ml.g4dn and ml.g5. It has 535 (12.2) on ml.p5 and
  ml.g6, and 550 (12.4) on ml.p5e and ml.p5en ("Best practices to minimize interruptions during GPU driver upgrades",
  SageMaker's developer guide; older copies also list ml.p2 and ml.p3 in the first group). The guide does not name the
  other families.
* Blackwell needs driver 570 or newer: "HGX B200 requires a driver container version of 570.133.20 or later"
  (NVIDIA/cloud-native-docs#184, gpu-operator/platform-support.rst).

**The derived choice has not been confirmed on AWS**, so users of `ServingPlatform` can give another AMI.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker.instances import GpuInstance

__all__ = ["HOST_AMIS", "HostAmi", "host_ami", "warning_about_host_ami"]


@dataclass(frozen=True)
class HostAmi:
    """A host AMI for GPU instances.

    Attributes:
        name: the value of `InferenceAmiVersion`.
        driver: the major version of the NVIDIA driver.
        cuda: the CUDA version of that driver, `(major, minor)`.
        mounts_cuda_compat: whether the container toolkit mounts CUDA's forward-compatibility libraries.
    """

    name: str
    driver: int
    cuda: tuple[int, int]
    mounts_cuda_compat: bool


HOST_AMIS = (
    HostAmi("al2-ami-sagemaker-inference-gpu-2", 535, (12, 2), mounts_cuda_compat=True),
    HostAmi("al2-ami-sagemaker-inference-gpu-2-1", 535, (12, 2), mounts_cuda_compat=False),
    HostAmi("al2-ami-sagemaker-inference-gpu-3-1", 550, (12, 4), mounts_cuda_compat=False),
    HostAmi("al2023-ami-sagemaker-inference-gpu-4-1", 580, (13, 0), mounts_cuda_compat=False),
)
"""The host AMIs for GPU instances, oldest driver first."""

_SERVED_BY_DEFAULT_HOST = (12, 2)
_BLACKWELL = (10, 0)
_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)*")
_BLACKWELL_DRIVER = 570
_FAILED_ON_NEXT_MAJOR = 12
"""The major version of CUDA whose images were seen to fail on the host of the next one."""

_DEFAULT_DRIVERS = {
    **dict.fromkeys(("ml.p2", "ml.p3", "ml.p4d", "ml.p4de", "ml.g4dn", "ml.g5"), (470, (11, 4))),
    **dict.fromkeys(("ml.p5", "ml.g6"), (535, (12, 2))),
    **dict.fromkeys(("ml.p5e", "ml.p5en"), (550, (12, 4))),
}
"""Family to driver and CUDA of SageMaker's default host."""


def host_ami(cuda: str | None, compute_capability: str) -> str | None:
    """The host AMI for an image on a GPU; None: SageMaker's default host.

    A driver runs every CUDA version that is older than its own, and every newer one with the same major version (CUDA's
    minor-version compatibility), so an image with CUDA 12.9 runs on the driver of 12.4. Images up to CUDA 12.2 keep the
    default host, on which they have run for years. Blackwell gets the only AMI whose driver supports it.

    Args:
        cuda: the image's CUDA version, such as "13.0.1"; None if it is not known, as for the newest releases.
        compute_capability: the GPU's compute capability, such as "8.6".

    Raises:
        ConfigurationError: an argument is not a version, or is of another type.
    """
    for name, value in (("cuda", cuda), ("compute_capability", compute_capability)):
        if value is not None and not _VERSION.fullmatch(value):
            raise ConfigurationError(
                f"{name} of host_ami() is {value!r}, which is not a version: write numbers and dots, such as '12.4'"
            )
    if cuda is None or _numbers(compute_capability) >= _BLACKWELL:
        return HOST_AMIS[-1].name
    image = _numbers(cuda)
    if image <= _SERVED_BY_DEFAULT_HOST:
        return None
    return next((ami.name for ami in reversed(HOST_AMIS) if ami.cuda[0] == image[0]), HOST_AMIS[-1].name)


def warning_about_host_ami(name: str | None, cuda: str | None, instance: GpuInstance) -> str | None:
    """Why a host AMI may not fit an image on an instance type; None if no reason is known.

    Args:
        name: the host AMI, or None for SageMaker's default host.
        cuda: the image's CUDA version, such as "13.0.1"; None if it is not known.
        instance: the instance type.
    """
    image = None if cuda is None else _numbers(cuda)
    is_blackwell = _numbers(instance.compute_capability) >= _BLACKWELL
    if name is None:
        return None if image is None else _warning_about_default_host(image, instance.family)
    ami = next((ami for ami in HOST_AMIS if ami.name == name), None)
    if ami is None:
        return None
    if is_blackwell and ami.driver < _BLACKWELL_DRIVER:
        return f"the host's driver is {ami.driver}, but a Blackwell GPU needs {_BLACKWELL_DRIVER} or newer"
    if image is None or ami.cuda[0] == image[0]:
        return None
    if ami.cuda[0] < image[0]:
        cuda_of_host = ".".join(map(str, ami.cuda))
        return f"the host has driver {ami.driver} of CUDA {cuda_of_host}, which is older than the image's CUDA"
    if image[0] != _FAILED_ON_NEXT_MAJOR:
        return None
    failed = f"images with CUDA 12.8 and 12.9 failed on a host with CUDA {ami.cuda[0]} (deep-learning-containers#6187)"
    return (
        f"{failed}, but AWS's sample for ml.g7e.12xlarge runs an image with CUDA 12.9 on this host (FLUX.2-dev of "
        "sagemaker-genai-hosting-examples)"
        if is_blackwell
        else failed
    )


def _warning_about_default_host(image: tuple[int, int], family: str) -> str | None:
    if image <= _SERVED_BY_DEFAULT_HOST or family not in _DEFAULT_DRIVERS:
        return None
    driver, cuda = _DEFAULT_DRIVERS[family]
    if cuda[0] == image[0]:
        return None
    return f"the default host has driver {driver} of CUDA {cuda[0]}.{cuda[1]}, which is older than the image's CUDA"


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
