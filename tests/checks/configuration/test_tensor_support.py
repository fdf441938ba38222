"""The rules CT207 to CT209 and CT216 to CT218: what a backend does with inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from sample_repositories.torch_models import torchscript

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(201, 220))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[Finding]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [finding for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[Place]]] = {
    "CT207": (
        'backend: "python" input { name: "IN" data_type: TYPE_UINT8 dims: [ 224, 224 ] format: FORMAT_NHWC }',
        [("CT207", "model/config.pbtxt", "input[0].format")],
    ),
    "CT208": (
        'backend: "python" output { name: "OUT" data_type: TYPE_INT32 dims: 4 is_shape_tensor: true }',
        [("CT208", "model/config.pbtxt", "output[0].is_shape_tensor")],
    ),
    "CT209": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP16 dims: 4 is_non_linear_format_io: true }',
        [("CT209", "model/config.pbtxt", "input[0].is_non_linear_format_io")],
    ),
    "CT216": (
        'backend: "openvino" input { name: "IN" data_type: TYPE_FP32 dims: 4 optional: true } output '
        '{ name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [("CT216", "model/config.pbtxt", "input[0].optional")],
    ),
    "CT216 of a batch": (
        'backend: "onnxruntime" max_batch_size: 4 input { name: "IN" data_type: TYPE_FP32 dims: 4 '
        'optional: true } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [("CT216", "model/config.pbtxt", "input[0].optional")],
    ),
    "CT216 ragged": (
        'backend: "onnxruntime" input { name: "IN" data_type: TYPE_FP32 dims: 4 optional: true '
        'allow_ragged_batch: true } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [("CT216", "model/config.pbtxt", "input[0].optional")],
    ),
    "CT217": (
        'backend: "tensorrt" instance_group { kind: KIND_GPU } input { name: "IN" data_type: '
        'TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [("CT217", "model/config.pbtxt", "input[0].data_type")],
    ),
    "CT217 list": (
        'backend: "pytorch" input { name: "IN" data_type: TYPE_FP32 dims: 4 }output { name: '
        '"TEXT__0" data_type: TYPE_STRING dims: [ 2, 2 ] }',
        [("CT217", "model/config.pbtxt", "output[0].data_type")],
    ),
    "CT217 list of a batch": (
        'backend: "pytorch" max_batch_size: 8 input { name: "IN__0" data_type: TYPE_FP32 dims: 4 } output { name: '
        '"TEXT__0" data_type: TYPE_STRING dims: 1 }',
        [("CT217", "model/config.pbtxt", "output[0].data_type")],
    ),
    "CT218": (
        'backend: "pytorch"',
        [("CT218", "model/config.pbtxt", "input"), ("CT218", "model/config.pbtxt", "output")],
    ),
}


def test_a_torchscript_file_without_a_configuration(messages: Messages, write: Write) -> None:
    repository = write({"model/1/model.pt": torchscript()}, base={})
    assert messages.of(repository.check()) == [
        ("CT218", "model/config.pbtxt", "input"),
        ("CT218", "model/config.pbtxt", "output"),
    ]


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_tensors(messages: Messages, write: Write, text: str, findings: list[Place]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert messages.of(found_in(repository)) == findings


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
