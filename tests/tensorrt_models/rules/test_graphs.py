"""The rule CT706: a network of which no TensorRT builds a plan; TensorRT-RTX's parser agrees where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages

from cdk_triton import ServingPlatform, TensorRTPlan
from cdk_triton.tensorrt_models.reader.parser import TensorRTParser
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.repository import Recipe
from sample_repositories.builds import PlanOfExample
from sample_repositories.onnx_graphs import REFUSED, TAKEN, graph
from sample_repositories.plans import needs_parser

CONFIG = """
platform: "tensorrt_plan"
input { name: "x" data_type: TYPE_FP32 dims: [ 4, 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 4, 4 ] }
"""
HEAD = '<ir_version: 8, opset_import: ["" : 17]> model (float[4, 4] x) => (float[4, 4] y) '

BROKEN = {
    "a misspelt operator": "{ y = Gemmm(x) }",
    "in a branch": (
        "<bool c = {1}> { y = If(c) <then_branch = t () => (float[4, 4] a) { a = Rellu(x) }, "
        "else_branch = e () => (float[4, 4] b) { b = Relu(x) }> }"
    ),
    "shapes": "<float[3] w = {1, 2, 3}> { y = Add(x, w) }",
    "an undefined value": "{ y = Add(x, q) }",
    "a cycle": "{ y = Add(a, x) a = Relu(y) }",
}
LEFT = {
    "sound": "{ y = Relu(x) }",
    "a plugin of TensorRT's": "{ y = EfficientNMS_TRT(x) }",
    "a plugin of another name": "{ y = FancyAttention(x) }",
    "a plugin of another domain": "{ y = TRT.Rellu(x) }",
    "an operator of a newer opset": "{ y = Gelu(x) }",
    "an unknown attribute": "{ y = Relu <slope = 1> (x) }",
    "a permutation of another rank": "{ y = Transpose <perm = [0, 1, 2]> (x) }",
}


def plan_codes(root: Path, body: str, recipe: Recipe | None = None, *, preflight: bool = False) -> list[str]:
    (root / "net").mkdir(parents=True)
    (root / "net/config.pbtxt").write_text(CONFIG)
    (root / "net/net.onnx").write_bytes(graph(HEAD + body).SerializeToString())
    repository = ModelRepository.from_directory(root, recipes=[recipe or TensorRTPlan("net", onnx="net.onnx")])
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    return [each.code for each in repository.check(platform=platform, preflight=preflight)]


@pytest.mark.parametrize("name", BROKEN)
def test_a_network_that_cannot_be_built(messages: Messages, tmp_path: Path, name: str) -> None:
    assert plan_codes(tmp_path, BROKEN[name]) == ["CT706"]


@pytest.mark.parametrize("name", LEFT)
def test_a_network_that_may_be_built(tmp_path: Path, name: str) -> None:
    assert plan_codes(tmp_path, LEFT[name]) == []


def test_a_recipe_of_ones_own_may_load_plugins(tmp_path: Path) -> None:
    own = PlanOfExample(("net/1/model.plan",), "net/net.onnx", ())
    assert plan_codes(tmp_path, BROKEN["a misspelt operator"], own) == []


@needs_parser
@pytest.mark.parametrize("name", BROKEN)
def test_the_parser_rejects_it_and_is_not_quoted_for_the_same_operator(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.onnx").write_bytes(graph(HEAD + BROKEN[name]).SerializeToString())
    network = TensorRTParser.for_profiles([])(tmp_path / "model.onnx")
    assert network.faults or network.failure
    if "operator" in name:
        assert plan_codes(tmp_path / "repository", BROKEN[name], preflight=True) == ["CT706"]


KINDS = ("shape", "attribute", "value", "cycle")


@needs_parser
@pytest.mark.parametrize("name", [name for name, (_, kind) in REFUSED.items() if kind in KINDS and name not in LEFT])
def test_the_parser_rejects_what_the_rule_does(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.onnx").write_bytes(graph(REFUSED[name][0]).SerializeToString())
    network = TensorRTParser.for_profiles([])(tmp_path / "model.onnx")
    assert network.faults or network.failure


@needs_parser
@pytest.mark.parametrize(
    "text",
    [
        *(TAKEN[name] for name in ("sound", "unsorted", "stale value_info", "another output shape is declared")),
        HEAD + LEFT["a permutation of another rank"],
    ],
)
def test_the_parser_takes_what_the_rule_does(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.onnx").write_bytes(graph(text).SerializeToString())
    network = TensorRTParser.for_profiles([])(tmp_path / "model.onnx")
    assert (network.faults, network.failure) == ((), "")
