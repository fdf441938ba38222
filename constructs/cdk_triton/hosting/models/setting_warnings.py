"""Warns of settings that are allowed and probably not meant: of the host, and of a multi-model container.

What is wrong with a repository, by itself or on this platform, is a finding of the checks instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

__all__ = ["warn_about_host", "warn_about_multi_model"]

RELEASE_AFTER_UNLOAD = "--backend-config=dali,release_after_unload=true"

HOST_WARNING = "cdk-triton:HostDriver"
LOAD_LIMIT_WARNING = "cdk-triton:ModelLoadGpuLimit"
DALI_MEMORY_WARNING = "cdk-triton:DaliMemory"


def warn_about_host(construct: IConstruct, platform: ServingPlatform) -> None:
    """Warn where the host's driver is not known to suit the image's CUDA version."""
    if (warning := platform.host_ami_warning) is not None and platform.versions is not None:
        host = platform.inference_ami_version or "no inference_ami_version"
        Annotations.of(construct).add_warning_v2(
            HOST_WARNING,
            f"the platform has {host}, and Triton {platform.release} has CUDA {platform.versions.cuda}: {warning}, so"
            " that the container may not find a GPU. Leave inference_ami_version out to have it derived from the"
            " release, or try it in your account, then acknowledge this",
        )


def warn_about_multi_model(
    construct: IConstruct, settings: ContainerEnvironment, backends: Mapping[str, Collection[str]]
) -> None:
    """Warn of settings that keep SageMaker from making room for others of the ensembles, whose backends are given."""
    if settings.model_load_gpu_limit is not None:
        Annotations.of(construct).add_warning_v2(
            LOAD_LIMIT_WARNING,
            f"model_load_gpu_limit is {settings.model_load_gpu_limit}, and a load beyond it is answered with 400: "
            "SageMaker unloads other models at 507 only, so that the invocation fails and no room is made. Leave it"
            " out, or acknowledge this",
        )
    dali = [name for name, used in backends.items() if "dali" in used]
    if dali and RELEASE_AFTER_UNLOAD not in settings.additional_args:
        Annotations.of(construct).add_warning_v2(
            DALI_MEMORY_WARNING,
            f"DALI keeps its GPU memory when SageMaker unloads {', '.join(dali)}, so that no room is made for other "
            f"archives. Add {RELEASE_AFTER_UNLOAD!r} to additional_args of the environment, or acknowledge this",
        )
