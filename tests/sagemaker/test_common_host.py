"""Which host AMI several platforms have in common, as the instance pools of one variant need it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import DERIVED, ServingPlatform, common_host_ami, gpu_instances

if TYPE_CHECKING:
    from golden_messages import Messages

CUDA_12, CUDA_13 = "25.04", "25.09"
GPU_3, GPU_4 = "al2-ami-sagemaker-inference-gpu-3-1", "al2023-ami-sagemaker-inference-gpu-4-1"
UNKNOWN = "al2030-ami-sagemaker-inference-gpu-9-1"


def on(instance_type: str, release: str = CUDA_13, ami: str | None = DERIVED) -> ServingPlatform:
    return ServingPlatform(release=release, instance_type=instance_type, inference_ami_version=ami)


@pytest.mark.parametrize(
    ("platforms", "ami"),
    [
        pytest.param([on("ml.g5.xlarge"), on("ml.g6.xlarge"), on("ml.g4dn.xlarge")], GPU_4, id="one derived AMI"),
        pytest.param([on("ml.g5.xlarge", CUDA_12), on("ml.g4dn.xlarge", CUDA_12)], GPU_3, id="one of CUDA 12"),
        pytest.param([on("ml.g5.xlarge", "23.07"), on("ml.g4dn.xlarge", "23.07")], None, id="the default host"),
        pytest.param([on("ml.g5.xlarge"), on("ml.g7e.2xlarge")], GPU_4, id="CUDA 13 on Ampere and on Blackwell"),
        pytest.param([on("ml.g5.xlarge", ami=UNKNOWN), on("ml.g6.xlarge")], UNKNOWN, id="one that nobody can judge"),
        pytest.param([on("ml.g6.xlarge"), on("ml.g5.xlarge", ami=UNKNOWN)], UNKNOWN, id="given to a fallback"),
        pytest.param([on("ml.p5e.48xlarge", CUDA_12, None), on("ml.p5.48xlarge", CUDA_12)], None, id="none, given"),
        pytest.param(
            [on("ml.g5.xlarge", CUDA_12, GPU_4), on("ml.g7e.2xlarge", CUDA_12)], GPU_4, id="what its user overruled"
        ),
    ],
)
def test_one_that_suits_every_gpu_is_found(platforms: list[ServingPlatform], ami: str | None) -> None:
    assert common_host_ami("variant 'A'", platforms) == ami


@pytest.mark.parametrize(
    ("platforms", "pair"),
    [
        pytest.param(
            [on("ml.g6.xlarge", CUDA_12), on("ml.g5.xlarge", CUDA_12), on("ml.g7e.2xlarge", CUDA_12)],
            ("ml.g6.xlarge", "ml.g7e.2xlarge"),
            id="CUDA 12 on Blackwell",
        ),
        pytest.param(
            [on("ml.g6.xlarge", CUDA_12, None), on("ml.g5.xlarge", CUDA_12)],
            ("ml.g6.xlarge", "ml.g5.xlarge"),
            id="a default host that is too old elsewhere",
        ),
        pytest.param(
            [on("ml.g5.xlarge", ami=GPU_3), on("ml.g6.xlarge")],
            ("ml.g5.xlarge", "ml.g6.xlarge"),
            id="a driver that was given and is too old",
        ),
        pytest.param(
            [on("ml.g5.xlarge", ami=UNKNOWN), on("ml.g4dn.xlarge"), on("ml.g6.xlarge", ami=GPU_3)],
            ("ml.g5.xlarge", "ml.g6.xlarge"),
            id="two that were given",
        ),
    ],
)
def test_the_pair_that_does_not_fit_is_named(
    messages: Messages, platforms: list[ServingPlatform], pair: tuple[str, str]
) -> None:
    with messages.raises(ConfigurationError) as caught:
        common_host_ami("variant 'A'", platforms)
    assert all(name in str(caught.value) for name in pair)


def test_the_newest_release_has_one_for_all_gpus() -> None:
    x86 = [each.name for each in gpu_instances().values() if each.hosting and each.host == "x86_64"]
    known = [
        replace(on("ml.g5.xlarge", "26.05"), instance_type=name) for name in x86 if name[:5] not in ("ml.p2", "ml.p3")
    ]
    assert common_host_ami("variant 'A'", known) == GPU_4
