"""Which machines build: those of the service models, and the one for each endpoint."""

from __future__ import annotations

import json
from importlib.resources import files

import boto3
import pytest
from botocore.model import StructureShape

from cdk_triton.sagemaker import (
    accounts,
    codebuild_gpu,
    codebuild_gpu_regions,
    gpu_instance,
    gpu_instances,
    image_releases,
    processing_instance,
)


@pytest.mark.slow
def test_the_types_for_processing_are_those_of_the_service_model() -> None:
    model = boto3.client("sagemaker", region_name="us-east-1").meta.service_model
    offered = model.shape_for("ProcessingInstanceType").metadata["enum"]
    table = json.loads(files("cdk_triton.sagemaker").joinpath("data", "build_machines.json").read_text())

    assert table["processing"] == [name for name in gpu_instances() if name in offered]
    assert {name for name in offered if name.startswith(("ml.g", "ml.p"))} == set(table["processing"])


def test_codebuilds_gpu_is_the_one_that_the_service_model_describes() -> None:
    environment = boto3.client("codebuild", region_name="us-east-1").meta.service_model.shape_for("ProjectEnvironment")
    assert isinstance(environment, StructureShape)
    described = environment.members["computeType"].documentation

    assert codebuild_gpu() == "NVIDIA A10G"
    assert f"1 {codebuild_gpu()} Tensor Core GPU" in described
    assert "4 NVIDIA Tesla V100 GPUs" in described


@pytest.mark.parametrize("region", codebuild_gpu_regions())
def test_a_region_that_builds_has_an_image_to_build_in(region: str) -> None:
    assert any(region in accounts(release) for release in image_releases())


@pytest.mark.parametrize(
    ("endpoint", "builds_on"),
    [
        ("ml.g4dn.12xlarge", "ml.g4dn.12xlarge"),
        ("ml.g5.2xlarge", "ml.g5.2xlarge"),
        ("ml.g6e.xlarge", "ml.g6e.xlarge"),
        ("ml.g7e.48xlarge", "ml.g7e.48xlarge"),
        ("ml.p5.4xlarge", "ml.p5.4xlarge"),
        ("ml.p5.48xlarge", "ml.p5.4xlarge"),
        ("ml.p4d.24xlarge", None),
        ("ml.p4de.24xlarge", None),
        ("ml.p5e.48xlarge", None),
        ("ml.p5en.48xlarge", None),
        ("ml.p6-b200.48xlarge", None),
        ("ml.p6-b300.48xlarge", None),
        ("ml.p6e-gb200.36xlarge", None),
    ],
)
def test_a_job_builds_on_the_endpoints_type_or_on_its_gpu(endpoint: str, builds_on: str | None) -> None:
    found = processing_instance(gpu_instance(endpoint))

    assert (found and found.name) == builds_on
    assert found is None or found.gpu == gpu_instance(endpoint).gpu
