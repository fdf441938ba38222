"""Which host AMI suits which CUDA version."""

from __future__ import annotations

import pytest

from cdk_triton.sagemaker import HOST_AMIS, ServingPlatform, host_ami_for_cuda
from cdk_triton.sagemaker.host_amis import warning_about_host_ami
from cdk_triton.triton import releases

AMIS = [None, *(ami.name for ami in HOST_AMIS)]


@pytest.mark.parametrize("cuda", sorted({row.cuda for row in releases() if row.cuda is not None}))
def test_nothing_speaks_against_a_derived_host(cuda: str) -> None:
    assert warning_about_host_ami(host_ami_for_cuda(cuda), cuda) is None


@pytest.mark.parametrize(
    ("cuda", "doubtful"),
    [
        pytest.param("12.1.0", [False, False, False, False, True], id="the default host is enough"),
        pytest.param("12.9.0", [True, False, False, False, True], id="any driver of CUDA 12"),
        pytest.param("13.0.1", [True, True, True, True, False], id="only the driver of CUDA 13"),
    ],
)
def test_what_speaks_against_a_host(cuda: str, doubtful: list[bool]) -> None:
    assert [warning_about_host_ami(ami, cuda) is not None for ami in AMIS] == doubtful


def test_a_platform_without_a_version_or_with_an_unknown_host_is_not_judged() -> None:
    image = f"example.com/triton@sha256:{64 * '0'}"
    assert (
        ServingPlatform(instance_type="ml.g5.xlarge", image=image, inference_ami_version=None).host_ami_warning is None
    )
    new = "al2030-ami-sagemaker-inference-gpu-9-1"
    platform = ServingPlatform(instance_type="ml.g5.xlarge", release="25.09", inference_ami_version=new)
    assert platform.host_ami_warning is None
