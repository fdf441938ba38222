"""The rules CT657 to CT659, and CT662: containers that generate, and what their protocol carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from cdk_triton.triton import ContainerEnvironment, Severity
from sample_repositories import platform_with
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

DECOUPLED = "model_transaction_policy { decoupled: true }"
INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }'
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }'
CONFIG = "model/config.pbtxt"

InferenceType = Literal["infer", "generate", "generate_stream"]


def checked(write: Write, *fields: str, inference_type: InferenceType, release: str = "25.09") -> list[Place]:
    files = {CONFIG: "\n".join(['backend: "python"', *fields]), "model/1/model.py": PYTHON_MODEL}
    environment = ContainerEnvironment(inference_type=inference_type)
    found = write(files, base={}).check(platform=platform_with(release), environment=environment)
    return [(each.code, each.path, each.field) for each in found]


@pytest.mark.parametrize(
    ("inference_type", "found"),
    [("generate", [("CT657", CONFIG, "")]), ("generate_stream", []), ("infer", ["CT652"])],
)
def test_a_decoupled_model_needs_generate_stream(
    write: Write, inference_type: InferenceType, found: list[Place | str]
) -> None:
    places = checked(write, DECOUPLED, INPUT, OUTPUT, inference_type=inference_type)
    assert places == found or [code for code, *_ in places] == found


def test_a_decoupled_step_needs_generate_stream(write: Write, messages: Messages) -> None:
    step = """ensemble_scheduling { step { model_name: "model" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }"""
    files = {
        "pipeline/config.pbtxt": f'platform: "ensemble" {INPUT} {OUTPUT} {step}',
        "pipeline/1/.keep": "",
        CONFIG: f'backend: "python" {DECOUPLED} {INPUT} {OUTPUT}',
        "model/1/model.py": PYTHON_MODEL,
    }
    environment = ContainerEnvironment(inference_type="generate")
    found = write(files, base={}).check(default_model="pipeline", environment=environment)
    assert messages.of(found) == [("CT657", "pipeline/config.pbtxt", "")]


def test_who_knows_that_there_is_one_response_can_acknowledge_the_error(write: Write) -> None:
    files = {
        CONFIG: f'backend: "python" {DECOUPLED} {INPUT} {OUTPUT}',
        "model/1/model.py": PYTHON_MODEL,
        "cdk-triton.toml": '[acknowledge]\nCT657 = "it returns one response"\n',
    }
    environment = ContainerEnvironment(inference_type="generate")
    repository = write(files, base={})
    assert repository.check(environment=environment) == ()
    (acknowledged,) = repository.report(environment=environment).acknowledged
    assert (acknowledged.code, acknowledged.severity) == ("CT657", Severity.ERROR)


@pytest.mark.parametrize("inference_type", ["generate", "generate_stream"])
@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
@pytest.mark.parametrize("side", ["input", "output"])
def test_json_has_no_half_precision(write: Write, side: str, datatype: str, inference_type: InferenceType) -> None:
    tensor = f'{side} {{ name: "half" data_type: TYPE_{datatype} dims: [ 4 ] }}'
    other = OUTPUT if side == "input" else INPUT
    place = ("CT658", CONFIG, f"{side}[0].data_type")
    assert checked(write, tensor, other, inference_type=inference_type) == [place]


def test_binary_tensors_have_half_precision(write: Write) -> None:
    tensor = 'input { name: "half" data_type: TYPE_FP16 dims: [ 4 ] }'
    assert checked(write, tensor, OUTPUT, inference_type="infer") == []


def test_an_optional_input_can_be_left_out(write: Write) -> None:
    tensor = 'input { name: "half" data_type: TYPE_FP16 dims: [ 4 ] optional: true }'
    assert checked(write, INPUT, tensor, OUTPUT, inference_type="generate") == []


@pytest.mark.parametrize(
    ("side", "name", "count"),
    [
        ("input", "id", 0),
        ("input", "parameters", 1),
        ("input", "model_name", 0),
        ("output", "id", 0),
        ("output", "model_name", 1),
        ("output", "model_version", 1),
        ("output", "parameters", 0),
        ("output", "outputs", 0),
    ],
)
def test_a_tensor_cannot_have_the_name_of_a_member(write: Write, side: str, name: str, count: int) -> None:
    tensor = f'{side} {{ name: "{name}" data_type: TYPE_STRING dims: [ 1 ] }}'
    other = OUTPUT if side == "input" else INPUT
    found = checked(write, tensor, other, inference_type="generate")
    assert found == [("CT662", CONFIG, f"{side}[0].name")] * count


def test_the_infer_protocol_has_room_for_every_name(write: Write) -> None:
    tensor = 'input { name: "parameters" data_type: TYPE_FP32 dims: [ 1 ] }'
    assert checked(write, tensor, OUTPUT, inference_type="infer") == []


def test_an_optional_input_with_the_name_of_a_member_can_be_left_out(write: Write) -> None:
    tensor = 'input { name: "parameters" data_type: TYPE_STRING dims: [ 1 ] optional: true }'
    assert checked(write, INPUT, tensor, OUTPUT, inference_type="generate") == []


def test_an_output_with_the_name_of_a_member_is_lost(write: Write, messages: Messages) -> None:
    tensor = 'output { name: "model_name" data_type: TYPE_STRING dims: [ 1 ] }'
    files = {CONFIG: f'backend: "python" {INPUT} {tensor}', "model/1/model.py": PYTHON_MODEL}
    found = write(files, base={}).check(environment=ContainerEnvironment(inference_type="generate"))
    assert messages.of(found) == [("CT662", CONFIG, "output[0].name")]


@pytest.mark.parametrize(("dims", "count"), [("[ -1, 2 ]", 0), ("[ -1, 2, -1 ]", 1)])
@pytest.mark.parametrize("batch", ["", "max_batch_size: 8"])
def test_one_dimension_of_an_input_may_vary(write: Write, dims: str, count: int, batch: str) -> None:
    tensor = f'input {{ name: "x" data_type: TYPE_FP32 dims: {dims} }}'
    output = 'output { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }'
    found = checked(write, batch, tensor, output, inference_type="generate_stream")
    assert found == [("CT659", CONFIG, "input[0].dims")] * count


def test_a_release_that_does_not_read_the_variable_infers(write: Write) -> None:
    tensor = 'input { name: "x" data_type: TYPE_FP16 dims: [ -1, -1 ] }'
    codes = [code for code, *_ in checked(write, tensor, OUTPUT, inference_type="generate", release="24.09")]
    assert codes == ["CT421"]
