"""SageMaker's instance types with NVIDIA GPUs.

The table is `data/gpu_instances.json`, which names its sources and the day they were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypedDict

from cdk_triton._arguments import TEXT, require_type
from cdk_triton._wording import did_you_mean, in_words, quoted
from cdk_triton.errors import ConfigurationError

__all__ = ["GpuInstance", "gpu_instance", "gpu_instances"]

_OTHER_TYPE = re.compile(r"(ml\.)?(?![gp])[a-z]+\d[\w-]*\.\w+")
"""A type of AWS's other families: those with NVIDIA GPUs begin with g or p."""

_SMALL_TYPES = ("ml.g4dn.xlarge", "ml.g5.xlarge", "ml.g6.xlarge")
"""Instance types to begin with: one GPU, and the smallest of their families."""


@dataclass(frozen=True)
class GpuInstance:
    """One instance type.

    Attributes:
        name: the name of the type, such as "ml.g5.2xlarge".
        gpu: NVIDIA's product name of the GPU, such as "NVIDIA A10G".
        architecture: NVIDIA's name of the GPU's generation, such as "Ampere".
        compute_capability: the GPU's compute capability, such as "8.6". A TensorRT plan fits one compute capability.
        gpu_memory_gb: the nominal memory of one GPU, in GB.
        gpu_count: number of GPUs.
        memory_gib: memory of the host, in GiB; None if no source states it.
        host: architecture of the host's processor, "x86_64" or "arm64".
        hosting: whether a real-time endpoint can use this type.
        multi_model_listed: whether AWS lists this type for multi-model endpoints with GPUs. AWS's list, as read, names
            no type newer than g5, so False means that support is unknown.
    """

    name: str
    gpu: str
    architecture: str
    compute_capability: str
    gpu_memory_gb: int
    gpu_count: int
    memory_gib: int | None
    host: str
    hosting: bool
    multi_model_listed: bool

    @property
    def family(self) -> str:
        """The type without its size, such as "ml.g5"."""
        return self.name.rpartition(".")[0]

    @property
    def vcpu_count(self) -> int:
        """The number of vCPUs: 4 in an "xlarge", 4 times N in an "Nxlarge".

        This holds for every type of the table whose vCPUs a source states: g5 to p6e in INSTANCE_RESOURCES (see the
        table's sources), and p3.8xlarge in re:Post's "sagemaker-cpu-gpu-utilization-100".
        """
        return 4 * int(self.name.rpartition(".")[2].removesuffix("xlarge") or 1)


class _Family(TypedDict):
    family: str
    gpu: str
    architecture: str
    compute_capability: str
    gpu_memory_gb: int
    host: str
    hosting: bool
    gpu_counts: dict[str, int]
    memory_gib: dict[str, int]
    multi_model_sizes: list[str]


@cache
def gpu_instances() -> Mapping[str, GpuInstance]:
    """Every SageMaker instance type with an NVIDIA GPU: name → facts."""
    families: list[_Family] = json.loads(
        files(__package__).joinpath("data/gpu_instances.json").read_text(encoding="utf-8")
    )["families"]
    rows = [
        GpuInstance(
            name=f"{family['family']}.{size}",
            gpu=family["gpu"],
            architecture=family["architecture"],
            compute_capability=family["compute_capability"],
            gpu_memory_gb=family["gpu_memory_gb"],
            gpu_count=count,
            memory_gib=family["memory_gib"].get(size),
            host=family["host"],
            hosting=family["hosting"],
            multi_model_listed=size in family["multi_model_sizes"],
        )
        for family in families
        for size, count in family["gpu_counts"].items()
    ]
    return MappingProxyType({row.name: row for row in rows})


def gpu_instance(name: str) -> GpuInstance:
    """The instance type of this name.

    Raises:
        ConfigurationError: no instance type with an NVIDIA GPU has this name.
    """
    require_type("instance_type", name, TEXT)
    known = gpu_instances()
    if name not in known:
        if _OTHER_TYPE.fullmatch(name):
            raise ConfigurationError(
                f"{quoted(name)} is an instance type without an NVIDIA GPU: use one with a GPU, such as "
                f"{in_words(_SMALL_TYPES)}"
            )
        families = dict.fromkeys(row.family for row in known.values() if row.hosting and row.host == "x86_64")
        sizes = [row.name for row in known.values() if row.family == name.rpartition(".")[0] and row.hosting]
        fix = f"use {in_words(sizes)}" if sizes else f"use a size of {in_words(families)}"
        raise ConfigurationError(
            f"{quoted(name)} is not a SageMaker instance type with an NVIDIA GPU{did_you_mean(name, known)}: {fix}"
        )
    return known[name]
