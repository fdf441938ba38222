"""Warns about a serving platform that may not work because of its host, or whose release is not in the tables.

Faults of a repository, even if they depend on the platform, are findings of the checks instead.
"""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton.sagemaker import DERIVED, ServingPlatform

__all__ = ["warn_about_platform"]

HOST_WARNING = "cdk-triton:HostDriver"
RELEASE_WARNING = "cdk-triton:NewerRelease"


def warn_about_platform(construct: IConstruct, platform: ServingPlatform) -> None:
    """Warn about a host driver that may not suit GPU and image, and about a release whose versions are assumed."""
    if (warning := platform.host_ami_warning) is not None:
        given = platform.inference_ami_version
        host = (
            "with SageMaker's default host (inference_ami_version=None)" if given is None else f"with the host {given}"
        )
        cuda = platform.versions.cuda if platform.versions is not None else None
        image = "an image of your own" if cuda is None else f"Triton {platform.release} with CUDA {cuda}"
        derived = replace(platform, inference_ami_version=DERIVED).inference_ami_version
        fix = (
            "Serve with release 25.09 or newer"
            if given == derived
            else "Omit inference_ami_version, so that cdk-triton derives the host AMI from release and GPU"
        )
        Annotations.of(construct).add_warning_v2(
            HOST_WARNING,
            f"the serving platform is {image} on {platform.instance_type} {host}: {warning}. The container may not "
            f"find a GPU. {fix}, or try the platform in your account, then acknowledge this",
        )
    if (assumed := platform.release_warning) is not None:
        Annotations.of(construct).add_warning_v2(
            RELEASE_WARNING,
            f"{assumed}. The checks use the newest known versions and rules. Upgrade cdk-triton if a newer version "
            "contains this release, or try the image in your account, then acknowledge this",
        )
