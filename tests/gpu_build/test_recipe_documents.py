"""What the recipes write down at synth is what the program follows."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.artifacts import write_archive
from cdk_triton.artifacts.build_plan import ensemble_document, platform_document
from cdk_triton.artifacts.recipes import Parity, TensorRTPlan
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
input { name: "ids" data_type: TYPE_INT32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""


@pytest.mark.slow
def test_a_repository_with_a_recipe_is_built(build: Any, tmp_path: Path, network: Callable[..., bytes]) -> None:
    model = tmp_path / "repository" / "tiny"
    model.mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    (model / "tiny.onnx").write_bytes(network())
    recipe = TensorRTPlan("tiny", onnx="tiny.onnx", precision="fp16", parity=Parity(ranges={"ids": (0, 9)}))
    repository = ModelRepository.from_directory(model.parent, recipes=[recipe])
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
    document: dict[str, Any] = ensemble_document(repository, platform)
    build.plan["platform"] = platform_document(platform)
    build.plan["ensembles"].append(document)
    sources = build.folder / document["sources"]
    sources.parent.mkdir()
    write_archive(repository, sources)

    code, log = build.run()

    assert code == 0, log
    (step,) = build.report(document["artifact_key"])["steps"]
    assert [output["path"] for output in step["outputs"]] == list(recipe.produces)
    assert step["parity"]["profiles"][0]["inputs"] == {"x": [8, 4], "ids": [8, 1]}
    with tarfile.open(build.out / document["artifact_key"] / "model.tar.gz") as archive:
        assert [entry.name for entry in archive if entry.isfile()] == ["tiny/1/model.plan", "tiny/config.pbtxt"]
