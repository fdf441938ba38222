"""The rules CT650 to CT655: whether the endpoint can hold the archive, and pass on what its entry model says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import onnx.parser
import pytest

from cdk_triton.triton import ContainerEnvironment, ModelRepository
from sample_repositories import platform_with
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

SMALL_INPUT = 'input { name: "ids" data_type: TYPE_INT32 dims: 8 }'
SMALL_OUTPUT = 'output { name: "label" data_type: TYPE_INT32 dims: 1 }'
DECOUPLED = "model_transaction_policy { decoupled: true }"


def python_model(*fields: str) -> Mapping[str, Change]:
    return {"model/config.pbtxt": "\n".join(['backend: "python"', *fields]), "model/1/model.py": PYTHON_MODEL}


@pytest.mark.parametrize(
    ("fields", "findings"),
    [
        pytest.param(
            ["max_batch_size: 32", SMALL_INPUT, 'output { name: "state" data_type: TYPE_FP32 dims: [ 512, 768 ] }'],
            [("CT650", "model/config.pbtxt", "output")],
            id="CT650 too large as JSON",
        ),
        pytest.param(
            [SMALL_INPUT, 'output { name: "mask" data_type: TYPE_UINT8 dims: [ 2048, 4096 ] }'],
            [("CT650", "model/config.pbtxt", "output")],
            id="CT650 too large as binary",
        ),
        pytest.param(
            [SMALL_INPUT, 'output { name: "half" data_type: TYPE_FP16 dims: [ 2048, 2048 ] }'],
            [("CT650", "model/config.pbtxt", "output")],
            id="CT650 what JSON cannot carry",
        ),
        pytest.param(
            [SMALL_INPUT, 'output { name: "half" data_type: TYPE_FP16 dims: [ 1024, 1024 ] }'], [], id="binary only"
        ),
        pytest.param(
            [SMALL_INPUT, 'output { name: "state" data_type: TYPE_FP32 dims: [ -1, 768 ] }'], [], id="no fixed shape"
        ),
        pytest.param(
            ['input { name: "image" data_type: TYPE_FP32 dims: [ 3, 800, 800 ] }', SMALL_OUTPUT],
            [("CT651", "model/config.pbtxt", "input")],
            id="CT651 too large as binary",
        ),
        pytest.param(
            ['input { name: "image" data_type: TYPE_FP32 dims: [ 3, 384, 384 ] }', SMALL_OUTPUT],
            [("CT651", "model/config.pbtxt", "input")],
            id="CT651 too large as JSON",
        ),
        pytest.param(
            [SMALL_INPUT, 'input { name: "x" data_type: TYPE_FP32 dims: 4000000 optional: true }', SMALL_OUTPUT],
            [],
            id="an optional input",
        ),
        pytest.param([SMALL_INPUT, SMALL_OUTPUT], [], id="small"),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_sizes(messages: Messages, write: Write, fields: list[str], findings: list[Place], mode: str) -> None:
    repository = write(python_model(*fields), base={})
    assert messages.of(repository.check("multi" if mode == "multi" else "single")) == findings


FEATURES = 'output { name: "features" data_type: TYPE_FP32 dims: [ 2048, 32, 32 ] }'
LABEL = 'output { name: "label" data_type: TYPE_FP32 dims: 1000 }'
CLASSES = 'output { name: "classes" data_type: TYPE_INT64 dims: [ 1024, 1024 ] }'


@pytest.mark.parametrize(
    ("backend", "outputs", "single", "multi"),
    [
        pytest.param("onnxruntime", [FEATURES], ["CT650"], ["CT655"], id="the only output"),
        pytest.param("onnxruntime", [FEATURES, LABEL], ["CT650"], ["CT650"], id="a caller may ask for the other one"),
        pytest.param("onnxruntime", [CLASSES], ["CT650"], ["CT650"], id="small integers are shorter in JSON"),
        pytest.param("python", [FEATURES], ["CT650"], ["CT650"], id="a Python model may return less"),
        pytest.param(
            "onnxruntime",
            [FEATURES.replace("}", 'label_filename: "labels.txt" }')],
            ["CT650"],
            ["CT650"],
            id="callers ask for classes",
        ),
    ],
)
def test_an_answer_that_is_too_large_in_every_form(
    messages: Messages, write: Write, backend: str, outputs: list[str], single: list[str], multi: list[str]
) -> None:
    fields = [f'backend: "{backend}"', "max_batch_size: 8", SMALL_INPUT, *outputs]
    files: dict[str, Change] = {"model/config.pbtxt": "\n".join(fields)}
    files["model/1/model.py" if backend == "python" else "model/1/model.onnx"] = PYTHON_MODEL
    repository = write(files, base={})

    def codes(found: list[Place]) -> list[str]:
        return [code for code, *_ in found if code.startswith("CT65")]

    assert codes(messages.of(repository.check("single"))) == single
    assert codes(messages.of(repository.check("multi"))) == multi


def test_an_answer_behind_an_ensemble(messages: Messages, write: Write) -> None:
    fields = ["max_batch_size: 8", SMALL_INPUT, FEATURES]
    step = (
        'platform: "ensemble" ensemble_scheduling { step { model_name: "model" model_version: -1 '
        'input_map { key: "ids" value: "ids" } output_map { key: "features" value: "features" } } }'
    )
    files: Mapping[str, Change] = {
        "whole/config.pbtxt": "\n".join([*fields, step]),
        "whole/1/README.md": "",
        "model/config.pbtxt": "\n".join(['backend: "onnxruntime"', *fields]),
        "model/1/model.onnx": PYTHON_MODEL,
    }
    found = [place[:2] for place in messages.of(write(files, base={}).check("multi")) if place[0].startswith("CT65")]
    assert found == [("CT655", "whole/config.pbtxt")]


ENCODER = """
<ir_version: 8, opset_import: ["" : 17]>
encoder (int64[batch, %s] ids) => (float[batch, tokens, 768] states)
{
  numbers = Cast <to = 1> (ids)
  column = Unsqueeze (numbers, last)
  states = Tile (column, repeats)
}
"""


@pytest.mark.parametrize(
    ("tokens", "dims", "output", "found"),
    [
        pytest.param("tokens", "512", "-1, 768", True, id="the tokens of the input"),
        pytest.param("tokens", "128", "-1, 768", False, id="fewer of them"),
        pytest.param("tokens", "-1", "-1, 768", False, id="any number"),
        pytest.param("others", "512", "-1, 768", False, id="of another name"),
        pytest.param("tokens", "512", "-1, -1", True, id="a number that the network knows"),
    ],
)
def test_an_output_as_long_as_an_input(write: Write, tokens: str, dims: str, output: str, found: bool) -> None:
    graph = onnx.parser.parse_model(ENCODER % tokens)
    graph.graph.initializer.append(onnx.helper.make_tensor("last", onnx.TensorProto.INT64, [1], [2]))
    graph.graph.initializer.append(onnx.helper.make_tensor("repeats", onnx.TensorProto.INT64, [3], [1, 1, 768]))
    config = f"""
        backend: "onnxruntime" max_batch_size: 8
        input {{ name: "ids" data_type: TYPE_INT64 dims: [ {dims} ] }}
        output {{ name: "states" data_type: TYPE_FP32 dims: [ {output} ] }}
    """
    files: Mapping[str, Change] = {"model/config.pbtxt": config, "model/1/model.onnx": graph.SerializeToString()}
    assert ("CT650" in {each.code for each in write(files, base={}).check("multi")}) == found


def test_only_the_entry_model_counts(write: Write) -> None:
    """What flows between the steps of an ensemble passes no endpoint."""
    large = 'output { name: "token_ids" data_type: TYPE_INT32 dims: 4000000 }'
    repository = write({"preprocess/config.pbtxt": (PREPROCESS_OUTPUT, large)})
    assert not {"CT650", "CT651"} & {finding.code for finding in repository.check()}


PREPROCESS_OUTPUT = 'output { name: "token_ids" data_type: TYPE_INT32 dims: -1 }'


def test_decoupled_in_a_multi_model_endpoint(messages: Messages, write: Write) -> None:
    repository = write(python_model(DECOUPLED), base={})
    for environment in (None, ContainerEnvironment(), ContainerEnvironment(inference_type="generate_stream")):
        found = repository.check("multi", environment=environment)
        assert messages.of(found) == [("CT652", "model/config.pbtxt", "model_transaction_policy.decoupled")]


def test_decoupled_in_a_single_model_container(messages: Messages, write: Write) -> None:
    repository = write(python_model(DECOUPLED), base={})
    assert messages.of(repository.check()) == [("CT653", "model/config.pbtxt", "model_transaction_policy.decoupled")]
    assert [finding.code for finding in repository.check(environment=ContainerEnvironment())] == ["CT652"]
    assert repository.check(environment=ContainerEnvironment(inference_type="generate_stream")) == ()
    generating = repository.check(environment=ContainerEnvironment(inference_type="generate"))
    assert [finding.code for finding in generating] == ["CT657"]


@pytest.mark.parametrize(("release", "code"), [("25.02", "CT652"), ("25.03", "CT653")])
def test_an_old_release_does_not_stream(write: Write, release: str, code: str) -> None:
    repository, platform = write(python_model(DECOUPLED), base={}), platform_with(release)
    assert [finding.code for finding in repository.check(platform=platform)] == [code]
    environment = ContainerEnvironment(inference_type="generate_stream")
    codes = {finding.code for finding in repository.check(platform=platform, environment=environment)}
    assert codes == ({"CT421", "CT652"} if release == "25.02" else set())


def test_a_decoupled_model_that_only_others_call(write: Write) -> None:
    change: Mapping[str, Change] = {
        "helper/config.pbtxt": f'backend: "python" {DECOUPLED}',
        "helper/1/model.py": PYTHON_MODEL,
    }
    assert write(change).check(additional_models=["helper"]) == ()


@pytest.mark.parametrize(("gigabytes", "codes"), [(511, []), (513, ["CT654"])])
def test_the_files_have_to_fit_on_a_volume(write: Write, gigabytes: int, codes: list[str]) -> None:
    files = {**python_model(SMALL_INPUT, SMALL_OUTPUT), "model/1/weights.bin": ""}
    weights = write(files, base={}).root / "model/1/weights.bin"
    os.truncate(weights, gigabytes * 1024**3)  # zeros, which take no space
    assert [finding.code for finding in ModelRepository.from_directory(weights.parents[2]).check()] == codes
