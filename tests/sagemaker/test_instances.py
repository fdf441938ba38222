"""The instance types with NVIDIA GPUs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import moto
import pytest

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import GpuInstance, gpu_instance, gpu_instances

if TYPE_CHECKING:
    from golden_messages import Messages


def test_an_instance_type_is_found_by_name() -> None:
    assert gpu_instance("ml.g5.12xlarge") == GpuInstance(
        name="ml.g5.12xlarge",
        gpu="NVIDIA A10G",
        architecture="Ampere",
        compute_capability="8.6",
        gpu_memory_gb=24,
        gpu_count=4,
        memory_gib=192,
        host="x86_64",
        hosting=True,
        multi_model_listed=False,
    )
    assert gpu_instance("ml.g5.12xlarge").family == "ml.g5"
    assert gpu_instance("ml.p6-b200.48xlarge").family == "ml.p6-b200"


def test_the_types_for_hosting_are_those_of_the_service_model() -> None:
    """A new boto3 that knows more GPU types fails here: add them to data/gpu_instances.json."""
    model = boto3.client("sagemaker", region_name="us-east-1").meta.service_model
    offered = model.shape_for("ProductionVariantInstanceType").metadata["enum"]
    assert {row.name for row in gpu_instances().values() if row.hosting} == {
        name for name in offered if name.startswith(("ml.g", "ml.p"))
    }


@pytest.mark.parametrize(
    ("name", "vcpus"),
    [
        # From INSTANCE_RESOURCES of aws/sagemaker-hyperpod-cli; of p3, from re:Post.
        ("ml.g5.xlarge", 4),
        ("ml.g6e.16xlarge", 64),
        ("ml.g7e.12xlarge", 48),
        ("ml.p3.8xlarge", 32),
        ("ml.p4de.24xlarge", 96),
        ("ml.p5.4xlarge", 16),
        ("ml.p6-b300.48xlarge", 192),
        ("ml.p6e-gb200.36xlarge", 144),
    ],
)
def test_the_size_tells_the_number_of_vcpus(name: str, vcpus: int) -> None:
    assert gpu_instance(name).vcpu_count == vcpus


def test_the_memory_of_a_host_is_that_of_its_ec2_instance() -> None:
    """A new moto that knows more types fails here: add their memory to data/gpu_instances.json."""
    path = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    described = json.loads(gzip.decompress(path.read_bytes()))
    for row in gpu_instances().values():
        found = described.get(row.name.removeprefix("ml."))
        assert row.memory_gib == (None if found is None else found["MemoryInfo"]["SizeInMiB"] / 1024), row.name


def test_a_gpu_has_one_compute_capability_and_memory() -> None:
    facts: dict[str, set[tuple[str, int, str]]] = {}
    for row in gpu_instances().values():
        facts.setdefault(row.gpu, set()).add((row.compute_capability, row.gpu_memory_gb, row.architecture))
    assert {gpu: len(found) for gpu, found in facts.items()} == dict.fromkeys(facts, 1)


def test_only_types_with_one_gpu_are_listed_for_multi_model_endpoints() -> None:
    assert {row.gpu_count for row in gpu_instances().values() if row.multi_model_listed} == {1}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("g5.2xlarge", id="without ml"),
        pytest.param("ml.g4dn.3xlarge", id="another size"),
        pytest.param("", id="empty"),
    ],
)
def test_an_unknown_type_is_rejected_with_those_that_exist(messages: Messages, name: str) -> None:
    with messages.raises(ConfigurationError):
        gpu_instance(name)


@pytest.mark.parametrize("name", ["ml.m5.large", "ml.c6i.xlarge", "ml.inf2.xlarge", "ml.trn1.32xlarge", "m7i.2xlarge"])
def test_a_type_without_a_gpu_is_told_from_a_misspelt_one(messages: Messages, name: str) -> None:
    with messages.raises(ConfigurationError):
        gpu_instance(name)


def test_what_to_begin_with_has_one_gpu_and_serves() -> None:
    for name in ("ml.g4dn.xlarge", "ml.g5.xlarge", "ml.g6.xlarge"):
        found = gpu_instance(name)
        assert (found.gpu_count, found.hosting, found.host) == (1, True, "x86_64")
