"""How many instances the copies of components need."""

from __future__ import annotations

import pytest

from cdk_triton.sagemaker import CopyRequirements, gpu_instance, instances_for

FOUR_GPUS = gpu_instance("ml.g5.12xlarge")  # 48 vCPUs, 192 GiB
GIB = 1024


def copies(*accelerators: int, memory_gib: int = 8, cpus: float = 0) -> list[CopyRequirements]:
    return [CopyRequirements(accelerators=each, memory_mib=memory_gib * GIB, cpus=cpus) for each in accelerators]


@pytest.mark.parametrize(
    ("wanted", "instances"),
    [
        ([], 0),
        (copies(1, 1, 1, 1), 1),
        (copies(1, 1, 1, 1, 1), 2),
        (copies(1, 3, 1, 3), 2),
        (copies(3, 3, 2), 3),  # eight GPUs, and no two of the copies share four
        (copies(1, 1, memory_gib=100), 2),
        (copies(1, 1, cpus=24), 1),
        (copies(1, 1, cpus=24.5), 2),
    ],
    ids=["none", "all", "one more", "mixed", "fragments", "memory", "cpus", "cpus and a half"],
)
def test_copies_stand_on_whole_gpus_with_their_memory_and_cpus(wanted: list[CopyRequirements], instances: int) -> None:
    assert instances_for(wanted, FOUR_GPUS) == instances


def test_memory_that_no_source_states_is_not_counted() -> None:
    assert instances_for(copies(1, memory_gib=10_000), gpu_instance("ml.p3.2xlarge")) == 1


def test_a_copy_that_fits_no_instance_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="more than an empty"):
        instances_for(copies(5), FOUR_GPUS)
