"""The rules CT220 to CT225: requests that warm a model up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(220, 230))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[str]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [str(finding) for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[str]]] = {
    "CT220 shape": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: -1 } model_warmup { name: '
        '"first" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ -1 ] '
        "random_data: true } } }",
        [
            "model/config.pbtxt model_warmup[0].inputs[\"IN\"].dims: error CT220: the warm-up 'first' "
            "gives the input 'IN' the dims [-1], and the server would not load 'model': warmup setting "
            "expects all variable-size dimensions are specified for input 'IN'; write the size of each "
            "dimension that callers send mostly",
        ],
    ),
    "CT220 data": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 } } }',
        [
            "model/config.pbtxt model_warmup[0].inputs[\"IN\"].zero_data: error CT220: the warm-up 'first' "
            "does not say where the data of the input 'IN' comes from, and the server would not load "
            "'model': warmup setting expects input 'IN' to have input_data_type set; write zero_data: "
            "true, random_data: true or input_data_file",
        ],
    ),
    "CT221 missing": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        "\"IN\" value { data_type: TYPE_FP32 dims: 4 input_data_file: 'data' } } }",
        [
            'model/config.pbtxt model_warmup[0].inputs["IN"].input_data_file: error CT221: the warm-up '
            "'first' reads the input 'IN' from 'model/warmup/data', which is not there, and the server "
            "would not load 'model': failed to open text file for read; put the 16 bytes of the tensor "
            "there",
        ],
    ),
    "CT221 text": (
        'backend: "python" input { name: "IN" data_type: TYPE_STRING dims: 4 } model_warmup { name: '
        '"first" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_STRING dims: 4 '
        "input_data_file: 'data' } } }",
        [
            'model/config.pbtxt model_warmup[0].inputs["IN"].input_data_file: error CT221: the warm-up '
            "'first' reads the input 'IN' from 'model/warmup/data', which is not there, and the server "
            "would not load 'model': failed to open text file for read; put the tensor's bytes there",
        ],
    ),
    "CT222 data type": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_INT64 dims: 4 zero_data: true } } }',
        [
            "model/config.pbtxt model_warmup[0].inputs[\"IN\"].data_type: error CT222: the warm-up 'first' "
            "has the input 'IN' as TYPE_INT64 with the dims [4], and the server would not load 'model': "
            "inference input 'IN' data-type is 'INT64', but model 'model' expects 'FP32'; write "
            "data_type: TYPE_FP32",
        ],
    ),
    "CT222 shape": (
        'backend: "python" max_batch_size: 2 input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" '
        'batch_size: 2 inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 2, 4 ] zero_data: '
        "true } } }",
        [
            "model/config.pbtxt model_warmup[0].inputs[\"IN\"].dims: error CT222: the warm-up 'first' has "
            "the input 'IN' as TYPE_FP32 with the dims [2, 4], and the server would not load 'model': "
            "unexpected shape for input 'IN' for model 'model'. Expected [-1,4], got [1,2,4]; write dims "
            "that agree with the input's [4], without the dimension of the batch",
        ],
    ),
    "CT222 missing": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 }',
        [
            "model/config.pbtxt model_warmup[0].inputs: error CT222: the warm-up 'first' lacks the input "
            "'IN', and the server would not load 'model': expected 1 inputs but got 0 inputs for model "
            "'model'; add the input 'IN' to it",
        ],
    ),
    "CT222 misspelt": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"INN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [
            "model/config.pbtxt model_warmup[0].inputs: error CT222: the warm-up 'first' lacks the input "
            "'IN', and the server would not load 'model': expected 1 inputs but got 0 inputs for model "
            "'model'; write 'IN' in the place of 'INN'",
        ],
    ),
    "CT223": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 1 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } inputs { key: "SCALE" value { '
        "data_type: TYPE_FP32 dims: 4 zero_data: true } } }",
        [
            "model/config.pbtxt model_warmup[0].inputs[\"SCALE\"]: warning CT223: the warm-up 'first' has "
            "the input 'SCALE', which neither the inputs nor the controls of 'model' name; the server "
            "would hand it to the model all the same; leave it out, or correct the name",
        ],
    ),
    "CT224": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first"  inputs { key: "IN" value { '
        "data_type: TYPE_FP32 dims: 4 zero_data: true } } }",
        [
            "model/config.pbtxt model_warmup[0].batch_size: warning CT224: the warm-up 'first' has the "
            "batch size 0, and the server would leave it out: Skipping batch 0 warmup sample 'first'; "
            "write batch_size: 1, also for a model without batching",
        ],
    ),
    "CT225": (
        'backend: "python" max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" '
        'batch_size: 9 inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [
            "model/config.pbtxt model_warmup[0].batch_size: error CT225: the warm-up 'first' has the "
            "batch size 9 and max_batch_size is 8, and the server would not load 'model': failed to run "
            "warmup sample 'first': batch size 9; write at most batch_size: 8",
        ],
    ),
    "CT225 without batching": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } model_warmup { name: "first" batch_size: 2 inputs { key: '
        '"IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
        [
            "model/config.pbtxt model_warmup[0].batch_size: error CT225: the warm-up 'first' has the "
            "batch size 2 and max_batch_size is 0, and the server would not load 'model': failed to run "
            "warmup sample 'first': batch size 2; write at most batch_size: 1",
        ],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_options(write: Write, text: str, findings: list[str]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert found_in(repository) == findings


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
        pytest.param("0123456789abcdef", 0, id="just enough"),
        pytest.param("0123456789abcdefg", 0, id="more than enough"),
        pytest.param("0123456789abcde", 1, id="too short"),
    ],
)
def test_the_size_of_a_warm_up_file(write: Write, content: str, findings: int) -> None:
    files = {"model/config.pbtxt": warm_up(FILE), "model/1/model.py": CODE, "model/warmup/data": content}
    found = found_in(write(files, base={}))
    assert len(found) == findings
    assert all(
        "which has 15 bytes, and the server would not load 'model': warmup setting expects 16 bytes" in each
        for each in found
    )


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
