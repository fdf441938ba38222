"""The rules CT207 to CT209 and CT216 to CT218: what a backend does with inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(201, 220))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[str]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [str(finding) for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[str]]] = {
    "CT207": (
        'backend: "python" input { name: "IN" data_type: TYPE_UINT8 dims: [ 224, 224 ] format: FORMAT_NHWC }',
        [
            "model/config.pbtxt input[0].format: error CT207: input 'IN' has the format FORMAT_NHWC and "
            "2 dims, and the server would not load 'model': model input NHWC/NCHW require 3 dims; write "
            "three dims without the one of the batch, or leave the format out",
        ],
    ),
    "CT208": (
        'backend: "python" output { name: "OUT" data_type: TYPE_INT32 dims: 4 is_shape_tensor: true }',
        [
            "model/config.pbtxt output[0].is_shape_tensor: error CT208: output 'OUT' is marked as a "
            "shape tensor, and the server would not load 'model': shape tensors are only supported for "
            "TensorRT platform; leave is_shape_tensor out",
        ],
    ),
    "CT209": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP16 dims: 4 is_non_linear_format_io: true }',
        [
            "model/config.pbtxt input[0].is_non_linear_format_io: error CT209: input 'IN' is marked as "
            "non-linear and has 1 dims, and the server would not load 'model': Non-linear IO format is "
            "only supported for the TensorRT platform; leave is_non_linear_format_io out",
        ],
    ),
    "CT216": (
        'backend: "openvino" input { name: "IN" data_type: TYPE_FP32 dims: 4 optional: true } output '
        '{ name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt input[0].optional: error CT216: input 'IN' is optional and the backend "
            "is 'openvino', which would not load 'model': 'optional' is set to true for input 'IN' while "
            "the backend model doesn't support optional input; leave optional out, and let callers send "
            "the input always",
        ],
    ),
    "CT216 of a batch": (
        'backend: "onnxruntime" max_batch_size: 4 input { name: "IN" data_type: TYPE_FP32 dims: 4 '
        'optional: true } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt input[0].optional: error CT216: input 'IN' is optional and the backend "
            "is 'onnxruntime', which would not load 'model': optional input 'IN' is not supported for "
            "models that support batching; leave optional out, and let callers send the input always",
        ],
    ),
    "CT216 ragged": (
        'backend: "onnxruntime" input { name: "IN" data_type: TYPE_FP32 dims: 4 optional: true '
        'allow_ragged_batch: true } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt input[0].optional: error CT216: input 'IN' is optional and the backend "
            "is 'onnxruntime', which would not load 'model': for ragged input 'IN', which is not "
            "supported for optional input; leave optional out, and let callers send the input always",
        ],
    ),
    "CT217": (
        'backend: "tensorrt" instance_group { kind: KIND_GPU } input { name: "IN" data_type: '
        'TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt input[0].data_type: error CT217: input 'IN' is TYPE_STRING with the dims "
            "[1], and the backend 'tensorrt' would not load 'model': unsupported datatype TYPE_STRING "
            "for input 'IN' for model 'model'; write a type that tensorrt has, and convert before the "
            "model where callers send another one",
        ],
    ),
    "CT217 list": (
        'backend: "pytorch" input { name: "IN" data_type: TYPE_FP32 dims: 4 }output { name: '
        '"TEXT__0" data_type: TYPE_STRING dims: [ 2, 2 ] }',
        [
            "model/config.pbtxt output[0].data_type: error CT217: output 'TEXT__0' is TYPE_STRING with "
            "the dims [2, 2], and the backend 'pytorch' would not load 'model': Triton only supports 1 "
            "dimensional List of String as output for 'TEXT__0'; write dims: 1 without batching, or an "
            "empty reshape with it",
        ],
    ),
    "CT218": (
        'backend: "pytorch"',
        [
            "model/config.pbtxt input: error CT218: the configuration names no input, and the backend "
            "'pytorch' would not load 'model': configuration expects 0 inputs; write every input of the "
            "model's forward function, in its order",
            "model/config.pbtxt output: error CT218: the configuration names no output, and the backend "
            "'pytorch' would not load 'model': model configuration must contain at least one output, "
            "none were specified; write every output of the model's forward function, in its order",
        ],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_tensors(write: Write, text: str, findings: list[str]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert found_in(repository) == findings


IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 }'
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'


SOUND: Mapping[str, str] = {
    "a format of three dims": 'input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 4, 3 ] format: FORMAT_NHWC }',
    "an optional input": IN[:-1] + " optional: true }" + OUT,
    "text": 'input { name: "IN" data_type: TYPE_STRING dims: [ 2, 2 ] }',
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_the_server_takes_is_no_fault(write: Write, text: str) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": CODE}, base={})
    assert found_in(repository) == []


def test_a_plan_may_have_shape_tensors_and_non_linear_formats(write: Write) -> None:
    shape = 'input { name: "SHAPE" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }'
    image = 'input { name: "IN" data_type: TYPE_FP16 dims: [ 8, 4, 4 ] is_non_linear_format_io: true }'
    flat = 'output { name: "OUT" data_type: TYPE_FP16 dims: [ 4, 4 ] is_non_linear_format_io: true }'
    repository = write(
        {"model/config.pbtxt": f'backend: "tensorrt" {shape} {image} {flat}', "model/1/model.plan": ""}, base={}
    )
    assert [(f.code, f.field) for f in repository.check() if f.code in OWN] == [
        ("CT209", "output[0].is_non_linear_format_io")
    ]
