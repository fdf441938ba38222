"""The rules CT247 and CT248: sizes that the server cannot count, by the release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

NEWER = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")
OLDER = ServingPlatform(release="26.03", instance_type="ml.g5.xlarge")
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } '


def given(dims: str, more: str = "") -> str:
    return f'input {{ name: "IN" data_type: TYPE_FP32 dims: [ {dims} ] {more} }} {OUT}'


def warm_up(dims: str, kind: str = "FP32", name: str = "IN") -> str:
    tensor = f'input {{ name: "IN" data_type: TYPE_{kind} dims: [ {", ".join(["-1"] * len(dims.split(",")))} ] }}'
    value = f"data_type: TYPE_{kind} dims: [ {dims} ] zero_data: true"
    inputs = f'inputs {{ key: "{name}" value {{ {value} }} }}'
    return f'{tensor} {OUT} model_warmup {{ name: "w" batch_size: 1 {inputs} }}'


def state(dims: str) -> str:
    tensor = f"data_type: TYPE_FP32 dims: [ {dims} ]"
    initial = f'initial_state {{ name: "i" {tensor} zero_data: true }}'
    return f'sequence_batching {{ state {{ input_name: "a" output_name: "b" {tensor} {initial} }} }} {OUT}'


WARM_UP = 'model_warmup[0].inputs["IN"].dims'


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(given("3037000500, 3037000500"), ["input[0].dims"], id="an input"),
        pytest.param(given("3037000499, 3037000499"), [], id="just below"),
        pytest.param(given("9223372036854775807"), [], id="one dimension"),
        pytest.param(given("1099511627776, 1099511627776, -1"), ["input[0].dims"], id="before a variable size"),
        pytest.param(given("-1, 1099511627776, 1099511627776"), [], id="after a variable size"),
        pytest.param(given("3037000500, 3037000500", "allow_ragged_batch: true"), ["input[0].dims"], id="ragged"),
        pytest.param(
            'output { name: "OUT" data_type: TYPE_FP32 dims: [ 3037000500, 3037000500 ] }', [], id="an output"
        ),
        pytest.param(
            'output { name: "OUT" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 3037000500, 3037000500 ] } }',
            ["output[0].reshape.shape"],
            id="the reshape of an output",
        ),
        pytest.param(warm_up("2305843009213693952"), [WARM_UP], id="the bytes of a warm-up"),
        pytest.param(warm_up("2305843009213693951"), [], id="just below, of a warm-up"),
        pytest.param(warm_up("2305843009213693952", "STRING"), [WARM_UP], id="the lengths of texts"),
        pytest.param(warm_up("2305843009213693952", "INT8"), [], id="small elements"),
        pytest.param(
            state("4611686018427387904"), ["sequence_batching.state[0].initial_state[0].dims"], id="an initial state"
        ),
    ],
)
def test_too_large(messages: Messages, write: Write, text: str, fields: list[str]) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": PYTHON_MODEL}, base={})
    found = [each for each in repository.check(platform=NEWER) if each.code == "CT247"]
    assert messages.of(found) == [("CT247", "model/config.pbtxt", field) for field in fields]
    assert not {"CT206", "CT247"} & {each.code for each in repository.check(platform=OLDER)}


@pytest.mark.parametrize(
    ("text", "platform", "fields"),
    [
        pytest.param(warm_up("-2"), None, [WARM_UP], id="negative"),
        pytest.param(warm_up("-2"), OLDER, [WARM_UP], id="negative, in an older server"),
        pytest.param(warm_up("-2"), NEWER, [WARM_UP], id="negative, in a newer server"),
        pytest.param(warm_up("-2, -2"), OLDER, [], id="a positive product"),
        pytest.param(warm_up("-2, -2"), NEWER, [WARM_UP], id="a positive product, in a newer server"),
        pytest.param(warm_up("0"), NEWER, [], id="nothing"),
        pytest.param(warm_up("-1"), NEWER, [], id="reported by CT220"),
        pytest.param(warm_up("-3, 4", "STRING"), None, [WARM_UP], id="texts"),
    ],
)
def test_negative(
    messages: Messages, write: Write, text: str, platform: ServingPlatform | None, fields: list[str]
) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": PYTHON_MODEL}, base={})
    found = [each for each in repository.check(platform=platform) if each.code == "CT248"]
    assert messages.of(found) == [("CT248", "model/config.pbtxt", field) for field in fields]


@pytest.mark.parametrize("platform", [OLDER, NEWER], ids=["26.03", "26.05"])
def test_the_server_that_counts_sizes_says_so_of_a_negative_initial_state(
    messages: Messages, write: Write, platform: ServingPlatform
) -> None:
    config = f'backend: "onnxruntime" {state("-2")}'.replace("dims: [ -2 ]", "dims: [ -1 ]", 1)
    repository = write({"model/config.pbtxt": config, "model/1/model.onnx": ""}, base={})
    found = [each for each in repository.check(platform=platform) if each.code == "CT262"]
    field = "sequence_batching.state[0].initial_state[0].dims"
    assert messages.of(found) == [("CT262", "model/config.pbtxt", field)]


@pytest.mark.parametrize(
    ("name", "platform", "findings"),
    [
        pytest.param("IN", OLDER, ["CT222"], id="compared with the model's input"),
        pytest.param("IN", NEWER, ["CT222"], id="without a size"),
        pytest.param("OTHER", OLDER, ["CT222"], id="of another input"),
        pytest.param("OTHER", NEWER, ["CT222", "CT222"], id="without a size, of another input"),
    ],
)
def test_a_warm_up_without_a_data_type(
    messages: Messages, write: Write, name: str, platform: ServingPlatform, findings: list[str]
) -> None:
    config = warm_up("4", name=name).replace("data_type: TYPE_FP32 dims: [ 4 ] zero_data", "dims: [ 4 ] zero_data")
    repository = write({"model/config.pbtxt": f'backend: "python" {config}', "model/1/model.py": PYTHON_MODEL}, base={})
    found = [each for each in repository.check(platform=platform) if each.code == "CT222"]
    assert [code for code, _, _ in messages.of(found)] == findings
