"""`ServingPlatform`: what follows from a release and an instance type, and what cannot serve."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import DERIVED, ServingPlatform, gpu_instances, image_releases
from cdk_triton.sagemaker.platform import platform_of

if TYPE_CHECKING:
    from golden_messages import Messages


DIGEST = "0123456789abcdef" * 4
OWN_IMAGE = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{DIGEST}"


def test_release_and_instance_type_say_everything() -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
    assert platform.image_identity == "sagemaker-tritonserver:25.09-py3"
    assert platform.image_uri("eu-west-1") == (
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:25.09-py3"
    )
    assert platform.label == "25.09-a10g"
    assert (platform.gpu, platform.compute_capability) == ("NVIDIA A10G", "8.6")
    assert (platform.gpu_count, platform.gpu_memory_gb) == (4, 24)
    assert platform.inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert platform.versions is not None
    assert platform.versions.triton == "2.61.0"


def test_a_platform_is_a_value() -> None:
    one, other = (ServingPlatform(release="25.09", instance_type="ml.g5.xlarge") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.release = "25.04"  # type: ignore[misc]  # the point of this test


def test_sizes_of_a_family_share_a_label_and_gpus_do_not() -> None:
    def label(instance_type: str) -> str:
        return ServingPlatform(release="25.09", instance_type=instance_type).label

    assert label("ml.g5.xlarge") == label("ml.g5.48xlarge")
    assert label("ml.p4d.24xlarge") == "25.09-a100-40gb"
    assert label("ml.p4de.24xlarge") == "25.09-a100-80gb"
    assert label("ml.g7e.2xlarge") == "25.09-rtx-pro-6000-blackwell-server-edition"


@pytest.mark.parametrize(
    ("release", "ami"),
    [
        ("22.12", None),  # CUDA 11.8
        ("23.10", None),  # CUDA 12.2
        ("23.12", "al2-ami-sagemaker-inference-gpu-3-1"),  # CUDA 12.3
        ("25.04", "al2-ami-sagemaker-inference-gpu-3-1"),  # CUDA 12.9
        ("25.09", "al2023-ami-sagemaker-inference-gpu-4-1"),  # CUDA 13.0
        ("26.05", "al2023-ami-sagemaker-inference-gpu-4-1"),  # CUDA 13.2
    ],
)
def test_the_host_ami_follows_the_cuda_version_of_the_release(release: str, ami: str | None) -> None:
    assert ServingPlatform(release=release, instance_type="ml.g4dn.xlarge").inference_ami_version == ami


def test_the_host_ami_can_be_chosen_or_left_to_sagemaker() -> None:
    def ami(choice: str | None) -> str | None:
        platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", inference_ami_version=choice)
        return platform.inference_ami_version

    assert ami("al2-ami-sagemaker-inference-gpu-3-1") == "al2-ami-sagemaker-inference-gpu-3-1"
    assert ami("al2027-ami-sagemaker-inference-gpu-9-9") == "al2027-ami-sagemaker-inference-gpu-9-9"
    assert ami(None) is None
    assert ami(DERIVED) == "al2023-ami-sagemaker-inference-gpu-4-1"


def test_an_own_image_is_known_by_its_digest_wherever_it_is_stored() -> None:
    platform = ServingPlatform(image=OWN_IMAGE, instance_type="ml.g6.xlarge")
    elsewhere = ServingPlatform(
        image="${Token[AWS.AccountId.8]}.dkr.ecr.${Token[AWS.Region.4]}.amazonaws.com/mirror@sha256:" + DIGEST,
        instance_type="ml.g6.xlarge",
    )
    assert platform.image_identity == elsewhere.image_identity == f"sha256:{DIGEST}"
    assert platform.label == elsewhere.label == "own-0123456789ab-l4"
    assert platform.image_uri("eu-west-1") == OWN_IMAGE
    assert platform.versions is None
    assert platform.inference_ami_version is None


def test_the_length_of_a_token_says_nothing_about_the_image() -> None:
    image = "${Token[TOKEN.1]}" * 12 + f"/triton@sha256:{DIGEST}"
    assert len(image) > 255
    assert ServingPlatform(image=image, instance_type="ml.g5.xlarge").image_uri("eu-west-1") == image


def test_a_release_beside_an_own_image_tells_its_versions() -> None:
    # 26.06 has no image of SageMaker's: an own one is how it is used.
    platform = ServingPlatform(release="26.06", image=OWN_IMAGE, instance_type="ml.g6.xlarge")
    assert platform.versions is not None
    assert platform.versions.cuda is not None
    assert platform.inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert platform.label == "26.06-0123456789ab-l4"


def test_a_release_whose_cuda_version_is_unknown_gets_the_newest_host() -> None:
    platform = ServingPlatform(release="26.11", image=OWN_IMAGE, instance_type="ml.g6.xlarge")
    assert platform.versions is not None
    assert platform.versions.cuda is None
    assert platform.inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"


@pytest.mark.parametrize("release", ["27.01", "26.12"])
def test_a_release_newer_than_the_tables_is_served_by_an_own_image(messages: Messages, release: str) -> None:
    platform = ServingPlatform(release=release, image=OWN_IMAGE, instance_type="ml.g6.xlarge")
    assert platform.versions is not None
    assert (platform.versions.release, platform.versions.triton, platform.versions.cuda) == (release, None, None)
    assert platform.versions.tensorrt_confidence == "unverified"
    assert platform.inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert platform.label == f"{release}-0123456789ab-l4"
    assert platform.release_warning is not None
    messages.record("ServingPlatform", platform.release_warning)


@pytest.mark.parametrize("release", ["26.13", "27.00", "24.13", "22.01", "27.1"])
def test_a_release_that_nobody_publishes_is_no_newer_one(messages: Messages, release: str) -> None:
    with messages.raises(ConfigurationError):
        ServingPlatform(release=release, image=OWN_IMAGE, instance_type="ml.g6.xlarge")


def test_nothing_is_assumed_of_a_release_that_sagemaker_publishes() -> None:
    for release in image_releases():
        assert ServingPlatform(release=release, instance_type="ml.g4dn.xlarge").release_warning is None


def test_an_own_image_may_be_for_an_arm_host() -> None:
    assert ServingPlatform(image=OWN_IMAGE, instance_type="ml.p6e-gb200.36xlarge").gpu == "NVIDIA GB200"


@pytest.mark.parametrize(
    "arguments",
    [
        {"instance_type": "ml.g5.xlarge"},
        {"release": 25.10, "instance_type": "ml.g5.xlarge"},
        {"release": "25.09", "instance_type": None},
        {"release": "25.9", "instance_type": "ml.g5.xlarge"},
        {"release": "", "instance_type": "ml.g5.xlarge"},
        {"release": "26.06", "instance_type": "ml.g5.xlarge"},
        {"release": "27.01", "instance_type": "ml.g5.xlarge"},
        {"release": "25.09", "instance_type": "ml.p3.2xlarge"},
        {"release": "22.07", "instance_type": "ml.p2.xlarge"},
        {"release": "25.09", "instance_type": "ml.gr6.4xlarge"},
        {"release": "25.09", "instance_type": "ml.p6e-gb200.36xlarge"},
        {"image": "nvcr.io/nvidia/tritonserver:25.09-py3", "instance_type": "ml.g5.xlarge"},
        {"image": "${Token[AWS.AccountId.8]}.dkr.ecr.eu-west-1.amazonaws.com/t:1", "instance_type": "ml.g5.xlarge"},
        {"image": f"{'r' * 200}/t@sha256:{DIGEST}", "instance_type": "ml.g5.xlarge"},
        {"release": "${Token[TOKEN.12]}", "instance_type": "ml.g5.xlarge"},
        {"release": "25.09", "instance_type": "ml.${Token[TOKEN.13]}"},
        {"release": "25.09", "instance_type": "ml.g5.xlarge", "inference_ami_version": "al2-gpu-3-1"},
    ],
    ids=lambda value: " ".join(f"{k}={v:.20}" if isinstance(v, str) else f"{k}" for k, v in value.items()),
)
def test_what_cannot_serve_is_rejected_with_the_reason_and_the_mend(
    messages: Messages, arguments: dict[str, Any]
) -> None:
    with messages.raises(ConfigurationError):
        ServingPlatform(**arguments)


@pytest.mark.parametrize("swapped", ["ml.g5.xlarge/26.05", "g5.xlarge/26.05"])
def test_a_short_form_with_the_instance_type_first_is_turned_round(messages: Messages, swapped: str) -> None:
    with messages.raises(ConfigurationError) as raised:
        platform_of(swapped)
    assert str(raised.value).endswith("write '26.05/" + swapped.removesuffix("/26.05") + "'")


def test_a_digest_that_is_a_token_is_rejected(messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        ServingPlatform(image="registry/triton@${Token[TOKEN.7]}", instance_type="ml.g5.xlarge")


def test_a_region_that_is_a_token_has_no_image_uri(messages: Messages) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    with messages.raises(ConfigurationError):
        platform.image_uri("${Token[AWS.Region.4]}")


def platform_or_rejection(release: str, instance_type: str) -> ServingPlatform | str:
    try:
        return ServingPlatform(release=release, instance_type=instance_type)
    except ConfigurationError as error:
        return str(error)


@given(st.sampled_from(image_releases()), st.sampled_from(sorted(gpu_instances())))
def test_every_pair_of_the_tables_serves_or_says_why_not(release: str, instance_type: str) -> None:
    found = platform_or_rejection(release, instance_type)
    if isinstance(found, str):
        assert found.startswith(f"{instance_type} ")
        assert ": use " in found
    else:
        assert found.image_uri("us-east-1").endswith(found.image_identity)
        assert re.fullmatch(r"\d\d\.\d\d(-[a-z0-9]+)+", found.label)
