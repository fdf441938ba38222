"""Which host AMI suits which CUDA version and which GPU."""

from __future__ import annotations

import pytest

from cdk_triton.sagemaker import HOST_AMIS, ServingPlatform, gpu_instance, gpu_instances, host_ami
from cdk_triton.sagemaker.host_amis import warning_about_host_ami
from cdk_triton.triton import releases

AMIS = [None, *(ami.name for ami in HOST_AMIS)]
DRIVERS = {ami.name: ami.driver for ami in HOST_AMIS}
AMPERE, BLACKWELL = "ml.g5.xlarge", "ml.g7e.2xlarge"


def is_blackwell(compute_capability: str) -> bool:
    return int(compute_capability.partition(".")[0]) >= 10


def test_the_derived_host_drives_every_gpu_with_every_release() -> None:
    for instance_type in gpu_instances():
        instance = gpu_instance(instance_type)
        capability = instance.compute_capability
        for row in releases():
            name = host_ami(row.cuda, capability)
            warning = warning_about_host_ami(name, row.cuda, instance)
            if is_blackwell(capability):
                assert name is not None, (instance_type, row.release)
                assert DRIVERS[name] >= 570, (instance_type, row.release)
                assert (warning is not None) == (row.cuda is not None and row.cuda.startswith("12.")), (
                    instance_type,
                    row.release,
                )
            else:
                assert warning is None, (instance_type, row.release)


@pytest.mark.parametrize(
    ("cuda", "ami"),
    [
        ("11.8.0", None),
        ("12.2.2", None),
        ("12.3.0", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("12.9.0.036", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("13.3.0.035", "al2023-ami-sagemaker-inference-gpu-4-1"),
        ("14.0", "al2023-ami-sagemaker-inference-gpu-4-1"),
        (None, "al2023-ami-sagemaker-inference-gpu-4-1"),
    ],
)
def test_a_cuda_version_needs_a_host_of_its_major_version(cuda: str | None, ami: str | None) -> None:
    assert host_ami(cuda, "8.6") == ami


@pytest.mark.parametrize(
    ("cuda", "instance_type", "doubtful"),
    [
        pytest.param("12.1.0", AMPERE, [False, False, False, False, True], id="the default host is enough"),
        pytest.param("12.9.0", AMPERE, [True, False, False, False, True], id="any driver of CUDA 12"),
        pytest.param("13.0.1", AMPERE, [True, True, True, True, False], id="only the driver of CUDA 13"),
        pytest.param(None, AMPERE, [False] * 5, id="an unknown CUDA"),
        pytest.param("12.9.0", "ml.p5en.48xlarge", [False, False, False, False, True], id="a default host of CUDA 12"),
        pytest.param("13.0.1", "ml.g6.xlarge", [True, True, True, True, False], id="a default host before CUDA 13"),
        pytest.param("13.0.1", "ml.g6e.xlarge", [False, True, True, True, False], id="a default host nobody names"),
        pytest.param("12.9.0", BLACKWELL, [False, True, True, True, True], id="CUDA 12 on Blackwell"),
        pytest.param("13.0.1", BLACKWELL, [False, True, True, True, False], id="CUDA 13 on Blackwell"),
        pytest.param(None, BLACKWELL, [False, True, True, True, False], id="an unknown CUDA on Blackwell"),
    ],
)
def test_what_speaks_against_a_host(cuda: str | None, instance_type: str, doubtful: list[bool]) -> None:
    assert [warning_about_host_ami(ami, cuda, gpu_instance(instance_type)) is not None for ami in AMIS] == doubtful


def test_an_unknown_host_is_not_judged() -> None:
    new = "al2030-ami-sagemaker-inference-gpu-9-1"
    platform = ServingPlatform(instance_type="ml.g5.xlarge", release="25.09", inference_ami_version=new)
    assert platform.host_ami_warning is None


@pytest.mark.parametrize(
    ("instance_type", "ami", "is_warned"),
    [
        ("ml.g5.xlarge", None, False),
        ("ml.g7e.2xlarge", None, False),
        ("ml.g7e.2xlarge", "al2-ami-sagemaker-inference-gpu-3-1", True),
    ],
)
def test_a_platform_without_a_release_is_judged_by_its_gpu(
    instance_type: str, ami: str | None, is_warned: bool
) -> None:
    image = f"example.com/triton@sha256:{64 * '0'}"
    platform = ServingPlatform(instance_type=instance_type, image=image, inference_ami_version=ami)
    assert (platform.host_ami_warning is not None) == is_warned
