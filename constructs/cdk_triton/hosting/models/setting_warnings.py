"""Warns of settings that are allowed and probably not meant: of the host, and of a multi-model container.

A fault of a repository, by itself or on this platform, is a finding of the checks instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton.sagemaker import DERIVED, ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.server_options import given_options

__all__ = ["warn_about_host", "warn_about_multi_model"]

RELEASE_AFTER_UNLOAD = "--backend-config=dali,release_after_unload=true"

HOST_WARNING = "cdk-triton:HostDriver"
RELEASE_WARNING = "cdk-triton:NewerRelease"
LOAD_LIMIT_WARNING = "cdk-triton:ModelLoadGpuLimit"
DALI_MEMORY_WARNING = "cdk-triton:DaliMemory"


def warn_about_host(construct: IConstruct, platform: ServingPlatform) -> None:
    """Warn where the host's driver is not known to suit GPU and image, and of a release whose versions are assumed."""
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


def warn_about_multi_model(
    construct: IConstruct, settings: ContainerEnvironment, backends: Mapping[str, Collection[str]]
) -> None:
    """Warn of settings that keep SageMaker from making room for others of the ensembles, whose backends are given."""
    if settings.model_load_gpu_limit is not None:
        Annotations.of(construct).add_warning_v2(
            LOAD_LIMIT_WARNING,
            f"model_load_gpu_limit is {settings.model_load_gpu_limit}. The container answers 400 to a load beyond this "
            "limit, but SageMaker unloads other models only after 507, so the invocation fails and no memory is freed. "
            "Remove model_load_gpu_limit, or acknowledge this",
        )
    dali = [name for name, used in backends.items() if "dali" in used]
    given = [f"--{option}={value}" for option, value in given_options(settings.additional_args)]
    if dali and RELEASE_AFTER_UNLOAD not in given:
        Annotations.of(construct).add_warning_v2(
            DALI_MEMORY_WARNING,
            f"DALI keeps its GPU memory when SageMaker unloads {', '.join(map(repr, dali))}, so other archives do not "
            f"get that memory. Add {RELEASE_AFTER_UNLOAD!r} to additional_args of the environment, or acknowledge this",
        )
