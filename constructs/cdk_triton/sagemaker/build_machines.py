"""The GPUs that AWS has for builds: CodeBuild's one GPU and its regions, and the types of SageMaker Processing.

The table is `data/build_machines.json`, which names its sources and the day they were read.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TypedDict

from cdk_triton.sagemaker.instances import GpuInstance, gpu_instances

__all__ = ["codebuild_gpu", "codebuild_gpu_regions", "processing_instance"]


class _CodeBuild(TypedDict):
    gpu: str
    regions: list[str]


class _Table(TypedDict):
    codebuild: _CodeBuild
    processing: list[str]


@cache
def _table() -> _Table:
    table: _Table = json.loads(files(__package__).joinpath("data/build_machines.json").read_text(encoding="utf-8"))
    return table


def codebuild_gpu() -> str:
    """The GPU of CodeBuild's on-demand machine with one GPU, such as "NVIDIA A10G"."""
    return _table()["codebuild"]["gpu"]


def codebuild_gpu_regions() -> tuple[str, ...]:
    """The regions where CodeBuild offers machines with GPUs on demand."""
    return tuple(_table()["codebuild"]["regions"])


def processing_instance(instance: GpuInstance) -> GpuInstance | None:
    """The instance type on which a Processing job builds for an endpoint's instance type.

    It is the endpoint's type if Processing offers that type, so that both have the same memory. Otherwise it is the
    first type with the same GPU, because a TensorRT plan depends on the GPU, but not on the size of the host.

    Returns:
        The type, or None if Processing does not offer the GPU.
    """
    offered = [gpu_instances()[name] for name in _table()["processing"]]
    if instance in offered:
        return instance
    return next((other for other in offered if other.gpu == instance.gpu), None)
