"""Repositories with a TensorRT model, for the tests of recipes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx.parser

from cdk_triton.artifacts import BuildRecipe
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

A10G = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")

CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 16
input { name: "ids" data_type: TYPE_INT32 dims: [ 128 ] }
output { name: "out" data_type: TYPE_FP32 dims: [ 128 ] }
"""
OPEN_CONFIG = CONFIG.replace("[ 128 ]", "[ -1 ]")

FP32_WEIGHTS = "<float[1] w = {2.0}>"
NETWORK = (
    "network (int32[batch, 128] ids) => (float[batch, 128] out) "
    f"{FP32_WEIGHTS} {{ x = Cast <to = 1> (ids) out = Mul (x, w) }}"
)


def onnx_bytes(graph: str = NETWORK) -> bytes:
    """An ONNX file from its text."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{graph}')
    return bytes(model.SerializeToString())


def bert(
    root: Path, *recipes: BuildRecipe, config: str = CONFIG, network: str | None = NETWORK, name: str = "model.onnx"
) -> ModelRepository:
    """A repository with the model `bert` and its network."""
    files = {"bert/config.pbtxt": config.encode()}
    if network is not None:
        files[f"bert/{name}"] = onnx_bytes(network)
    return written(root, files, recipes)


def written(root: Path, files: dict[str, bytes], recipes: Iterable[BuildRecipe] = ()) -> ModelRepository:
    """A repository of these files."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return ModelRepository.from_directory(root, recipes=recipes)
