"""The rules CT170 to CT174: whether ONNX Runtime would take the graph of an ONNX file.

`tests/integration/test_onnx_graphs_against_onnxruntime.py` lets the real ONNX Runtime judge the same graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from sample_repositories.onnx_graphs import REFUSED, TAKEN, graph

CODES = {
    "operator": "CT170",
    "newer": "CT170",
    "deprecated": "CT170",
    "node": "CT171",
    "shape": "CT172",
    "type": "CT172",
    "attribute": "CT172",
    "value": "CT173",
    "cycle": "CT173",
    "name": "CT173",
}
CUSTOM = 'backend: "onnxruntime" model_operations { op_library_filename: "libcustom.so" }'


def model(write: Write, text: str, config: str = 'backend: "onnxruntime"') -> ModelRepository:
    return write({"model/config.pbtxt": config, "model/1/model.onnx": graph(text).SerializeToString()}, base={})


@pytest.mark.parametrize("name", REFUSED)
def test_a_graph_that_would_not_be_loaded(messages: Messages, write: Write, name: str) -> None:
    text, kind = REFUSED[name]
    found = messages.of(each for each in model(write, text).check() if each.code.startswith("CT17"))
    assert (CODES[kind], "model/1/model.onnx", "") in found


@pytest.mark.parametrize("name", TAKEN)
def test_a_graph_that_is_loaded(write: Write, name: str) -> None:
    assert [each.code for each in model(write, TAKEN[name]).check() if each.code.startswith("CT17")] == []


@pytest.mark.parametrize(("config", "codes"), [('backend: "onnxruntime"', ["CT170"]), (CUSTOM, [])])
def test_a_library_of_operators_may_have_an_unknown_one(write: Write, config: str, codes: list[str]) -> None:
    repository = model(write, REFUSED["a misspelt operator"][0], config)
    assert [each.code for each in repository.check() if each.code == "CT170"] == codes


def test_one_mistake_in_many_nodes_is_one_finding(write: Write) -> None:
    text = TAKEN["sound"].replace("y = Relu(x)", "a = Rellu(x) b = Rellu(a) y = Rellu(b)")
    assert [each.code for each in model(write, text).check()] == ["CT170"]


@pytest.mark.parametrize(("release", "codes"), [(None, ["CT174"]), ("24.09", ["CT137"])])
def test_an_opset_that_nobody_knows(write: Write, release: str | None, codes: list[str]) -> None:
    repository = model(write, TAKEN["sound"].replace('"" : 17', '"" : 99'))
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert [each.code for each in repository.check(platform=platform)] == codes
