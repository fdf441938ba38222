"""The user guide's page of builds: its tables are those of the library."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from cdk_triton import artifacts
from cdk_triton.hosting import building
from cdk_triton.sagemaker import codebuild_gpu, codebuild_gpu_regions, gpu_instance

PAGE = (Path(__file__).parents[2] / "docs" / "builds.md").read_text()


def row(name: str) -> str:
    (found,) = re.findall(rf"^\| `{name}.*$", PAGE, re.MULTILINE)
    return str(found)


def test_the_page_names_codebuilds_gpu_and_regions() -> None:
    found = row("CodeBuildGpuBuilder")
    assert codebuild_gpu() in found
    assert sorted(re.findall(r"[a-z]{2}-[a-z]+-\d", found)) == sorted(codebuild_gpu_regions())


def test_the_page_names_the_instance_types_of_processing() -> None:
    table = json.loads(files("cdk_triton.sagemaker").joinpath("data", "build_machines.json").read_text())
    families = {gpu_instance(name).family for name in table["processing"]}
    assert set(re.findall(r"`(ml\.\w+)[.`]", row("SageMakerProcessingBuilder"))) == families


def test_the_page_names_every_recipe_and_warning() -> None:
    for name in ("TensorRTPlan", "DaliPipeline", "CondaEnvironment", "OnnxExport"):
        assert hasattr(artifacts, name)
        row(name)
    for code in (building.LONG_BUILD_WARNING, building.BUILD_TIMEOUT_WARNING):
        assert f"`{code}`" in PAGE
