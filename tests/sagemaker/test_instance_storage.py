"""Where instances keep model data."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files

import pytest

from cdk_triton.sagemaker import InstanceStorage, gpu_instance, gpu_instances, instance_storage


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("ml.p3.2xlarge", InstanceStorage(is_local=False, takes_volume_size=True)),
        ("ml.g5.xlarge", InstanceStorage(is_local=True, takes_volume_size=False)),
        ("ml.g6e.48xlarge", InstanceStorage(is_local=True, takes_volume_size=False)),
        ("ml.p5.48xlarge", InstanceStorage(is_local=True, takes_volume_size=None)),
    ],
)
def test_the_storage_of_an_instance_type_is_that_of_its_family(name: str, storage: InstanceStorage) -> None:
    assert instance_storage(gpu_instance(name)) == storage


def test_every_instance_type_has_its_storage() -> None:
    assert all(instance_storage(instance) for instance in gpu_instances().values())


def test_what_ec2_says_of_disks_is_what_the_table_says() -> None:
    """The copy of EC2's DescribeInstanceTypes in moto; a new one that knows more is compared too."""
    packed = files("moto.ec2").joinpath("resources", "instance_types.json.gz").read_bytes()
    types = json.loads(gzip.decompress(packed))
    compared = {
        instance.name: instance_storage(instance).is_local
        for instance in gpu_instances().values()
        if instance.name.removeprefix("ml.") in types
    }
    assert compared == {name: types[name.removeprefix("ml.")]["InstanceStorageSupported"] for name in compared}
    assert len(compared) > 40
