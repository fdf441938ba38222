"""The rules CT220 to CT225: requests that warm a model up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(220, 230))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[Finding]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [finding for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[Place]]] = {
    "CT220 shape": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: -1 } model_warmup { name: '
        '"first" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ -1 ] '
        "random_data: true } } }",
        [("CT220", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].dims')],
    ),
    "CT220 data": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 } } }',
        [("CT220", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].zero_data')],
    ),
    "CT221 missing": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        "\"IN\" value { data_type: TYPE_FP32 dims: 4 input_data_file: 'data' } } }",
        [("CT221", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].input_data_file')],
    ),
    "CT221 text": (
        'backend: "python" input { name: "IN" data_type: TYPE_STRING dims: 4 } model_warmup { name: '
        '"first" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_STRING dims: 4 '
        "input_data_file: 'data' } } }",
        [("CT221", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].input_data_file')],
    ),
    "CT222 data type": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_INT64 dims: 4 zero_data: true } } }',
        [("CT222", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].data_type')],
    ),
    "CT222 shape": (
        'backend: "python" max_batch_size: 2 input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" '
        'batch_size: 2 inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 2, 4 ] zero_data: '
        "true } } }",
        [("CT222", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].dims')],
    ),
    "CT222 missing": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 }',
        [("CT222", "model/config.pbtxt", "model_warmup[0].inputs")],
    ),
    "CT222 misspelt": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"INN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [("CT222", "model/config.pbtxt", "model_warmup[0].inputs")],
    ),
    "CT223": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } inputs { key: "SCALE" value { '
        "data_type: TYPE_FP32 dims: 4 zero_data: true } } }",
        [("CT223", "model/config.pbtxt", 'model_warmup[0].inputs["SCALE"]')],
    ),
    "CT224": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first"  inputs { key: "IN" value { '
        "data_type: TYPE_FP32 dims: 4 zero_data: true } } }",
        [("CT224", "model/config.pbtxt", "model_warmup[0].batch_size")],
    ),
    "CT225": (
        'backend: "python" max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" '
        'batch_size: 9 inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [("CT225", "model/config.pbtxt", "model_warmup[0].batch_size")],
    ),
    "CT225 without batching": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 2 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [("CT225", "model/config.pbtxt", "model_warmup[0].batch_size")],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_options(messages: Messages, write: Write, text: str, findings: list[Place]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert messages.of(found_in(repository)) == findings


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        pytest.param("", "write 'IN' instead of 'picture'", id="the only one"),
        pytest.param("sequence_batching { }", "add the input 'IN' to the warm-up", id="perhaps a control input"),
        pytest.param(
            'input { name: "OTHER" data_type: TYPE_FP32 dims: 4 }', "add the input 'IN' to the warm-up", id="one of two"
        ),
    ],
)
def test_an_input_by_another_name(write: Write, more: str, fix: str) -> None:
    text = (
        f'backend: "python" input {{ name: "IN" data_type: TYPE_FP32 dims: 4 }} {more} model_warmup {{ name: "first" '
        'batch_size: 1 inputs { key: "picture" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }'
    )
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert [each.fix for each in found_in(repository) if each.code == "CT222"] == [fix]


TENSORS = """
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""
ZEROS = 'inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }'
FILE = 'inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 input_data_file: "data" } }'


def warm_up(inputs: str, text: str = 'backend: "python"' + TENSORS, size: int = 1) -> str:
    return f'{text} model_warmup {{ name: "first" batch_size: {size} {inputs} }}'


@pytest.mark.parametrize(
    ("content", "findings"),
    [
        pytest.param("0123456789abcdef", [], id="just enough"),
        pytest.param("0123456789abcdefg", [], id="more than enough"),
        pytest.param(
            "0123456789abcde",
            [("CT221", "model/config.pbtxt", 'model_warmup[0].inputs["IN"].input_data_file')],
            id="too short",
        ),
    ],
)
def test_the_size_of_a_warm_up_file(messages: Messages, write: Write, content: str, findings: list[Place]) -> None:
    files = {"model/config.pbtxt": warm_up(FILE), "model/1/model.py": CODE, "model/warmup/data": content}
    assert messages.of(found_in(write(files, base={}))) == findings


SOUND: Mapping[str, str] = {
    "zeros": warm_up(ZEROS),
    "a full batch": warm_up(ZEROS, 'backend: "python" max_batch_size: 8' + TENSORS, 8),
    "the batch size is not known yet": warm_up(ZEROS, 'backend: "tensorrt"' + TENSORS, 8),
    "a backend that counts nothing": warm_up(ZEROS, 'backend: "own"' + TENSORS, 8),
    "the inputs are not known yet": warm_up(ZEROS, 'backend: "tensorrt"'),
    "a control of sequences": warm_up(
        ZEROS + ZEROS.replace("IN", "START"),
        'backend: "python" sequence_batching { control_input { name: "START" } }' + TENSORS,
    ),
    "no optional input": warm_up(
        ZEROS, 'backend: "python"' + TENSORS + 'input { name: "B" data_type: TYPE_FP32 dims: 1 optional: true }'
    ),
    "an ensemble, which has none": 'platform: "ensemble" model_warmup { }',
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_is_right_is_no_fault(write: Write, text: str) -> None:
    assert found_in(write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})) == []


@pytest.mark.parametrize(
    ("control", "release", "count"),
    [
        pytest.param("CORRID data_type: TYPE_STRING", "25.01", 1, id="compared"),
        pytest.param("CORRID data_type: TYPE_STRING", "24.12", 0, id="not compared yet"),
        pytest.param("CORRID data_type: TYPE_STRING", None, 0, id="of any release"),
        pytest.param("CORRID data_type: TYPE_UINT64", "25.01", 0, id="a number"),
        pytest.param("START bool_false_true: [ 0, 1 ] data_type: TYPE_STRING", "25.01", 0, id="another control"),
    ],
)
def test_the_correlation_id_of_a_warm_up_is_a_number(
    messages: Messages, write: Write, control: str, release: str | None, count: int
) -> None:
    config = (
        'backend: "python" max_batch_size: 4 input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } sequence_batching { control_input { name: "ID" control '
        f"{{ kind: CONTROL_SEQUENCE_{control} }} }} }} "
        'model_warmup { name: "first" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 '
        "zero_data: true } } }"
    )
    image = f"example.com/triton@sha256:{'0' * 64}"
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    findings = write({"model/config.pbtxt": config, "model/1/model.py": CODE}, base={}).check(platform=platform)
    found = messages.of(each for each in findings if each.code in OWN)
    assert found == [("CT222", "model/config.pbtxt", "model_warmup[0].batch_size")] * count
