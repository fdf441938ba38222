"""The disks on which instances keep model data: an EBS volume of a size that you choose, or their own NVMe disks.

The table is `data/instance_storage.json`, which names its sources and the day they were read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from cdk_triton.sagemaker.instances import GpuInstance

__all__ = ["InstanceStorage", "instance_storage"]


@dataclass(frozen=True)
class InstanceStorage:
    """The storage of a family of instance types.

    Attributes:
        is_local: True for NVMe disks of the instance, False for an EBS volume. The disks have a fixed size, and the
            instance encrypts them with a key of its own (EC2's user guide, "SSD instance store volumes").
        takes_volume_size: whether a variant can set the size of an EBS volume. None if no source answers this;
            SageMaker then probably rejects a size, because the instance has disks of its own.
    """

    is_local: bool
    takes_volume_size: bool | None


def instance_storage(instance: GpuInstance) -> InstanceStorage:
    """The storage of an instance type."""
    return _families()[instance.family]


@cache
def _families() -> Mapping[str, InstanceStorage]:
    text = files(__package__).joinpath("data/instance_storage.json").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            family: InstanceStorage(is_local=row["storage"] == "nvme", takes_volume_size=row["takes_volume_size"])
            for family, row in json.loads(text)["families"].items()
        }
    )
