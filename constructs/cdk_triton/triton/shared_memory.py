"""The shared memory in which a Python model's process exchanges tensors with the server.

Each instance of a Python model takes its start size of the container's `/dev/shm` when it is loaded, and more when its
tensors need more (python_backend: src/shm_manager.cc). So a small start size costs one growth at the first large
request, and a large one costs the models that would have fitted beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.model import Model
from cdk_triton.triton.option_values import MIB, least_shared_memory
from cdk_triton.triton.releases import release_order

__all__ = ["CONTAINER_BYTES", "python_instances", "start_bytes", "with_shared_memory"]

CONTAINER_BYTES: Final = 64 * MIB
"""`/dev/shm` of a container: Docker's default, for which SageMaker has no setting."""

_OLDEST: Final = "22.05"
"""Stands for the release of an image of one's own: the least size that every release takes."""

# Before 22.12, `docker/sagemaker/serve` of triton-inference-server/server has no default of its own (3e1258d3c), and
# the backend starts with 64 MiB and grows by 64 MiB: src/python_be.cc of python_backend at r22.10, lines 1645, 1646.
_GROWTH_SINCE: Final = "22.12"
_GROWTH: Final = MIB


def start_bytes(environment: ContainerEnvironment | None, release: str | None) -> int:
    """The bytes with which each instance of a Python model starts: those of the environment, or the least."""
    given = None if environment is None else environment.shm_default_byte_size
    return least_shared_memory(release or _OLDEST) if given is None else given


def with_shared_memory(environment: ContainerEnvironment, release: str | None) -> ContainerEnvironment:
    """The settings of a container with the least start size, and a small growth, where they have none.

    Args:
        environment: the settings.
        release: the Triton release that serves; None if it is not known.
    """
    growth = environment.shm_growth_byte_size
    if growth is None and release_order(release or _OLDEST) < release_order(_GROWTH_SINCE):
        growth = _GROWTH
    return replace(environment, shm_default_byte_size=start_bytes(environment, release), shm_growth_byte_size=growth)


def python_instances(model: Model, gpus: int) -> int:
    """How many instances a Python model has on a machine with `gpus` GPUs; 0 for a model of another backend.

    The backend prefers GPUs: NormalizeInstanceGroup of core. Each version that the server loads has all instances.
    """
    if model.backend_name != "python":
        return 0
    versions = len(model.served_versions) or 1
    if model.config is None or not model.config.instance_group:
        return gpus * versions
    total = 0
    for group in model.config.instance_group:
        on_gpus = group.kind in (group.KIND_GPU, group.KIND_AUTO)
        total += max(group.count, 1) * ((len(group.gpus) or gpus) if on_gpus else 1)
    return total * versions
