"""TensorRT plans that are not built yet: a network, its configuration, and the findings about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx.parser
import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.tensorrt_models.reader.parser import is_installed
from cdk_triton.tensorrt_models.recipe import Profile, ProfileShapes
from cdk_triton.triton import Finding, ModelRepository
from sample_repositories.builds import PlanOfExample

needs_parser = pytest.mark.skipif(not is_installed(), reason="the extra preflight is not installed: make preflight")

TWO_INPUTS = "network (int32[batch, tokens] ids, int32[batch, tokens] mask) => (int32[batch, tokens] out)"

ADD = f"{TWO_INPUTS} {{ out = Add (ids, mask) }}"

CONFIG = """
platform: "tensorrt_plan"
max_batch_size: 16
input { name: "ids" data_type: TYPE_INT32 dims: [ 128 ] }
input { name: "mask" data_type: TYPE_INT32 dims: [ 128 ] }
output { name: "out" data_type: TYPE_INT32 dims: [ 128 ] }
"""

OPEN = 'platform: "tensorrt_plan"'


def shapes(minimum: tuple[int, ...], optimum: tuple[int, ...], maximum: tuple[int, ...]) -> ProfileShapes:
    return ProfileShapes(minimum, optimum, maximum)


GOOD = shapes((1, 128), (8, 128), (16, 128))


def network(graph: str, opset: str = '"" : 17') -> bytes:
    text = f"<ir_version: 8, opset_import: [{opset}]>\n{graph}"
    return bytes(onnx.parser.parse_model(text).SerializeToString())


def checked(
    root: Path,
    graph: str | bytes = ADD,
    *,
    config: str = CONFIG,
    profiles: tuple[Profile, ...] | None = None,
    release: str = "25.09",
    preflight: bool = False,
) -> list[Finding]:
    """The findings about plans: with a recipe if there are profiles, else with `model.onnx` beside the plan."""
    content = graph if isinstance(graph, bytes) else network(graph)
    where = "bert/1/model.onnx" if profiles is None else "bert/bert.onnx"
    files: Mapping[str, bytes] = {"bert/config.pbtxt": config.encode(), where: content, "bert/1/model.plan": b"plan"}
    for name, written in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written)
    recipes = [] if profiles is None else [PlanOfExample(("bert/1/model.plan",), "bert/bert.onnx", profiles)]
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = ModelRepository.from_directory(root, recipes=recipes).check(platform=platform, preflight=preflight)
    return [finding for finding in findings if finding.code.startswith("CT7")]
