"""The rules about ensembles whose models leave to the ONNX Runtime backend what their files say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton.environment import ContainerEnvironment

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

BASE: dict[str, str] = {}

# What an exporter makes with a variable first dimension.
GRAPH = "(float[N, 4] x) => (float[N, 2] y) { y = Gemm(x, w) }"


def onnx(graph: str = GRAPH) -> str:
    """An ONNX file."""
    weights = "<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
    return f'<ir_version: 8, opset_import: ["" : 17]>\nmodel {graph.replace("{", weights + " {", 1)}\n'


def tensor(side: str, name: str, dims: str, data_type: str = "FP32") -> str:
    """An input or output."""
    return f'{side} {{ name: "{name}" data_type: TYPE_{data_type} dims: [ {dims} ] }}\n'


INPUT, OUTPUT = tensor("input", "picture", "4"), tensor("output", "scores", "2")


def model(text: str = "", *graphs: str) -> dict[str, Change]:
    """An ONNX model with these settings, and a version for each graph."""
    versions: dict[str, Change] = {f"m/{i}/model.onnx": onnx(graph) for i, graph in enumerate(graphs or (GRAPH,), 1)}
    return {"m/config.pbtxt": f'backend: "onnxruntime"\n{text}', **versions}


def ensemble(text: str = INPUT + OUTPUT, batch: int = 4, given: str = "x", result: str = "y") -> dict[str, Change]:
    """An ensemble that runs it."""
    return {
        "e/config.pbtxt": f"""
            platform: "ensemble"
            max_batch_size: {batch}
            {text}
            ensemble_scheduling {{
              step {{
                model_name: "m"
                model_version: -1
                input_map {{ key: "{given}" value: "picture" }}
                output_map {{ key: "{result}" value: "scores" }}
              }}
            }}
        """,
        "e/1/.gitkeep": "",
    }


def found(write: Write, change: Mapping[str, Change], arguments: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    environment = ContainerEnvironment(additional_args=arguments)
    return write(change, base=BASE).check(default_model="e", environment=environment)


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(ensemble() | model(), [], id="all of it completed"),
        pytest.param(ensemble() | model("max_batch_size: 4"), [], id="completed but for the size of batches"),
        pytest.param(ensemble(batch=8) | model("max_batch_size: 16"), [], id="larger batches"),
        pytest.param(
            ensemble(batch=8) | model(),
            [("CT336", "e/config.pbtxt", "max_batch_size")],
            id="CT336 the number that is filled in",
        ),
        pytest.param(
            ensemble(batch=8) | {"m/1/model.onnx": onnx()},
            [("CT336", "e/config.pbtxt", "max_batch_size")],
            id="CT336 of a model without a configuration",
        ),
        pytest.param(
            ensemble(batch=8) | model(INPUT.replace("picture", "x")),
            [("CT336", "e/config.pbtxt", "max_batch_size")],
            id="CT336 filled in together with the outputs alone",
        ),
        pytest.param(
            ensemble(tensor("input", "picture", "4", "FP16") + OUTPUT) | model(),
            [("CT330", "e/config.pbtxt", 'ensemble_scheduling.step[0].input_map["x"]')],
            id="CT330",
        ),
        pytest.param(
            ensemble(INPUT + tensor("output", "scores", "3")) | model(),
            [("CT331", "e/config.pbtxt", 'ensemble_scheduling.step[0].output_map["y"]')],
            id="CT331",
        ),
        pytest.param(
            ensemble(given="picture") | model(),
            [("CT332", "e/config.pbtxt", 'ensemble_scheduling.step[0].input_map["picture"]')],
            id="CT332",
        ),
        pytest.param(
            ensemble()
            | model("", "(float[N, 4] x, float[N, 2] z) => (float[N, 2] y) { g = Gemm(x, w)\ny = Add(g, z) }"),
            [("CT333", "e/config.pbtxt", "ensemble_scheduling.step[0].input_map")],
            id="CT333",
        ),
        pytest.param(
            ensemble(result="scores") | model(),
            [("CT334", "e/config.pbtxt", 'ensemble_scheduling.step[0].output_map["scores"]')],
            id="CT334",
        ),
        pytest.param(
            ensemble(batch=0) | model("", "(float[1, 4] x) => (float[1, 2] y) { y = Gemm(x, w) }"),
            [
                ("CT331", "e/config.pbtxt", 'ensemble_scheduling.step[0].input_map["x"]'),
                ("CT331", "e/config.pbtxt", 'ensemble_scheduling.step[0].output_map["y"]'),
            ],
            id="CT331 a first dimension that is fixed stays in the dims",
        ),
        pytest.param(
            ensemble(tensor("input", "picture", "1, 4") + tensor("output", "scores", "1, 2"), batch=0)
            | model("", "(float[1, 4] x) => (float[1, 2] y) { y = Gemm(x, w) }"),
            [],
            id="a fixed first dimension",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(found(write, change)) == findings


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            model("", "(float[N, 4] x) => (float[M, 2] y) { y = Gemm(x, w) }"), id="another size of the output"
        ),
        pytest.param(model("", "(float[N, 4] x) => (float[?, 2] y) { y = Gemm(x, w) }"), id="a size without a name"),
        pytest.param(
            model("version_policy { all { } }", GRAPH, GRAPH.replace("N", "1")), id="versions that are not the same"
        ),
        pytest.param(model('cc_model_filenames { key: "8.6" value: "a10g.onnx" }'), id="a file for each capability"),
        pytest.param(model() | {"m/1/libtriton_onnxruntime.so": "x"}, id="a backend of its own"),
    ],
)
def test_nothing_is_said_of_what_is_not_certain(write: Write, change: dict[str, Change]) -> None:
    wrong = ensemble(INPUT + tensor("output", "scores", "3"), batch=8)
    assert [each for each in found(write, wrong | change) if each.code.startswith("CT3")] == []


def test_another_default_may_be_said_on_the_command_line(write: Write) -> None:
    arguments = ("--backend-config=default-max-batch-size=16",)
    assert found(write, ensemble(batch=8) | model(), arguments) == ()


def test_the_message_says_where_the_number_comes_from(messages: Messages, write: Write) -> None:
    assert messages.of(found(write, ensemble(batch=8) | model())) == [("CT336", "e/config.pbtxt", "max_batch_size")]
