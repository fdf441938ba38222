"""One mistake is one finding: a rule about ensembles does not repeat a fault of a model with other advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from cdk_triton.triton import ModelRepository
from sample_repositories.builds import PlanOfExample
from sample_repositories.plans import network, shapes

if TYPE_CHECKING:
    from sample_repositories import Write

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "VECTOR" data_type: TYPE_FP32 dims: [ 4 ] }
ensemble_scheduling { step [
  { model_name: "words" model_version: -1
    input_map { key: "TEXT" value: "TEXT" } output_map { key: "IDS" value: "ids" } },
  { model_name: "net" model_version: -1
    input_map { key: "IDS" value: "ids" } output_map { key: "OUT" value: "VECTOR" } }
] }
"""
WORDS = """
backend: "python"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "IDS" data_type: TYPE_INT32 dims: [ 6 ] }
"""
NET = """
max_batch_size: 8
input { name: "IDS" data_type: TYPE_INT32 dims: [ 6 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }
"""
CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
GRAPH = network("g (int32[N, 6] IDS) => (float[N, 4] OUT) { OUT = com.microsoft.Attention (IDS) }", '"" : 17')
GOOD = shapes((1, 6), (8, 6), (8, 6))


def repository(write: Write, kind: str, change: tuple[str, str], *, of: str = "net") -> ModelRepository:
    """A sound ensemble with one change in a configuration; the network is an ONNX model, or a recipe's plan."""
    texts = {"all": ENSEMBLE, "words": WORDS, "net": f'backend: "{kind}"{NET}'}
    assert change[0] in texts[of]
    texts[of] = texts[of].replace(*change, 1)
    files = {f"{name}/config.pbtxt": text for name, text in texts.items()}
    path = "net/1/model.onnx" if kind == "onnxruntime" else "net/net.onnx"
    written = write({**files, "all/1/.gitkeep": "", "words/1/model.py": CLASS, path: GRAPH}, base={})
    if kind == "onnxruntime":
        return written
    recipe = PlanOfExample(("net/1/model.plan",), "net/net.onnx", ({"IDS": GOOD},))
    return ModelRepository.from_directory(written.root, recipes=[recipe])


CHANGES = pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(("INT32", "INT64"), "CT133", id="type of an input"),
        pytest.param(("FP32", "FP16"), "CT133", id="type of an output"),
        pytest.param(("[ 6 ]", "[ -1, 6 ]"), "CT134", id="batch dimension of an input"),
        pytest.param(("[ 6 ]", "[ 7 ]"), "CT134", id="dims of an input"),
        pytest.param(("[ 4 ]", "[ 1, 4 ]"), "CT134", id="dims of an output"),
        pytest.param(('"IDS"', '"IDX"'), "CT131", id="name of an input"),
        pytest.param(('"OUT"', '"OUTPUT"'), "CT131", id="name of an output"),
        pytest.param(
            ("input {", 'input { name: "zz" data_type: TYPE_FP32 dims: 1 } input {'), "CT132", id="another input"
        ),
    ],
)


@CHANGES
def test_a_tensor_that_differs_from_the_onnx_file_is_one_finding(
    write: Write, change: tuple[str, str], code: str
) -> None:
    found = repository(write, "onnxruntime", change).check()
    assert [(each.code, each.path.partition("/")[0]) for each in found] == [(code, "net")]


@CHANGES
def test_a_tensor_that_differs_from_a_recipes_network_is_a_fault_of_its_model_alone(
    write: Write, change: tuple[str, str], code: str
) -> None:
    found = repository(write, "tensorrt", change).check(platform="25.09/ml.g5.xlarge")
    assert {each.code for each in found if each.path.startswith("net")} & {"CT705", "CT604"}
    assert [each for each in found if each.path.startswith("all")] == []


STATE = """
sequence_batching { state {
  input_name: "BEFORE" output_name: "AFTER" data_type: TYPE_FP32 dims: [ 4 ]
} }
"""
BATCH_OUTPUT = 'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "AFTER" source_input: "IDS" }'


@pytest.mark.parametrize("named", [STATE, BATCH_OUTPUT], ids=["state", "batch output"])
def test_a_tensor_of_the_network_that_is_no_output_of_the_configuration_is_a_fault_of_the_step(
    write: Write, named: str
) -> None:
    files = {
        "all/config.pbtxt": ENSEMBLE.replace('key: "OUT"', 'key: "AFTER"'),
        "words/config.pbtxt": WORDS,
        "net/config.pbtxt": f'backend: "tensorrt"{NET}{named}',
    }
    graph = network(
        "g (int32[N, 6] IDS, float[N, 4] BEFORE) => (float[N, 4] OUT, float[N, 4] AFTER) "
        "{ OUT = com.microsoft.Attention (IDS) AFTER = Relu (BEFORE) }",
        '"" : 17',
    )
    written = write({**files, "all/1/.gitkeep": "", "words/1/model.py": CLASS, "net/net.onnx": graph}, base={})
    recipe = PlanOfExample(
        ("net/1/model.plan",), "net/net.onnx", ({"IDS": GOOD, "BEFORE": shapes((1, 4), (8, 4), (8, 4))},)
    )
    found = ModelRepository.from_directory(written.root, recipes=[recipe]).check(platform="25.09/ml.g5.xlarge")
    assert [each.field for each in found if each.code == "CT334"] == ['ensemble_scheduling.step[1].output_map["AFTER"]']


@pytest.mark.parametrize("mode", ["single", "multi"])
@pytest.mark.parametrize("change", [('"ensemble"', '"ensembel"'), ('platform: "ensemble"', "")])
def test_steps_without_the_platform_are_one_finding(
    write: Write, mode: Literal["single", "multi"], change: tuple[str, str]
) -> None:
    found = repository(write, "onnxruntime", change, of="all").check(mode)
    assert [each.code for each in found] == ["CT311"]


@pytest.mark.parametrize(
    ("of", "change", "code"),
    [
        pytest.param("all", ('key: "OUT"', 'key: "LOGITS"'), "CT334", id="a name that nothing has"),
        pytest.param("words", ("[ 6 ]", "[ 7 ]"), "CT331", id="dims of the model before"),
        pytest.param("words", ("INT32", "INT64"), "CT330", id="type of the model before"),
    ],
)
def test_a_fault_between_models_is_still_found(write: Write, of: str, change: tuple[str, str], code: str) -> None:
    found = repository(write, "onnxruntime", change, of=of).check()
    assert [each.code for each in found] == [code]
