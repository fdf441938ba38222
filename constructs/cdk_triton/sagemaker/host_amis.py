"""Which host AMI (`InferenceAmiVersion`) an image needs: the host's NVIDIA driver must know the image's CUDA version.

The names and drivers are in the SageMaker service model of botocore 1.44.5. Which AMI suits which CUDA version is
derived from them and from two reports: an endpoint of 25.04 (CUDA 12.9) on the default host had driver 470 and failed
(aws/deep-learning-containers#4990), and a CUDA 12.9 image failed on the host of CUDA 13 (#6187). **Nobody has confirmed
the derived choice on AWS**, so `ServingPlatform` lets its user overrule it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOST_AMIS", "HostAmi", "host_ami_for_cuda", "warning_about_host_ami"]


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


def host_ami_for_cuda(version: str) -> str | None:
    """The host AMI for an image with this CUDA version, such as "13.0.1"; None: SageMaker's default host.

    A driver runs every older CUDA version, and every newer one of its own major version (CUDA's minor-version
    compatibility), which is why 12.9 is content with the driver of 12.4. The default host served the images up to
    CUDA 12.2 for years, so these keep it.
    """
    major, minor = _major_and_minor(version)
    if (major, minor) <= _SERVED_BY_DEFAULT_HOST:
        return None
    return next((ami.name for ami in reversed(HOST_AMIS) if ami.cuda[0] == major), HOST_AMIS[-1].name)


def warning_about_host_ami(name: str | None, version: str) -> str | None:
    """What speaks against a host AMI for an image with this CUDA version; None where nothing is known to.

    Args:
        name: the host AMI, or None for SageMaker's default host.
        version: the image's CUDA version, such as "13.0.1".
    """
    image = _major_and_minor(version)
    if name is None:
        known = image <= _SERVED_BY_DEFAULT_HOST
        return None if known else "SageMaker's default host was seen with driver 470, which is older"
    ami = next((ami for ami in HOST_AMIS if ami.name == name), None)
    if ami is None or ami.cuda[0] == image[0]:
        return None
    if ami.cuda[0] < image[0]:
        return f"its driver {ami.driver} is of CUDA {ami.cuda[0]}.{ami.cuda[1]}"
    return f"an image with CUDA 12.9 failed on the host of CUDA {ami.cuda[0]}" if image[0] == 12 else None


def _major_and_minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
