"""The rules CT201 to CT219: inputs and outputs of configurations."""

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
    "CT201": (
        'backend: "python" input { data_type: TYPE_FP32 dims: 0 }',
        [
            "model/config.pbtxt input[0].name: error CT201: input 0 has no name, and the server would "
            "not load 'model': model input must specify 'name'; give it the name by which requests and "
            "the model know it",
        ],
    ),
    "CT202 and CT203": (
        'backend: "python" output { name: "OUT" }',
        [
            "model/config.pbtxt output[0].data_type: error CT202: output 'OUT' has no data type, nothing "
            "fills it in, and the server would not load 'model': model output 'OUT' must specify "
            "'data_type'; write the type that the model has, for example data_type: TYPE_FP32",
            "model/config.pbtxt output[0].dims: error CT203: output 'OUT' has no dims, nothing fills "
            "them in, and the server would not load 'model': model output 'OUT' must specify 'dims'; "
            "write the size of each dimension, -1 where it varies and without the one of the batch, for "
            "example dims: [ -1, 384 ]",
        ],
    ),
    "CT204 dims": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 0, -2 ] }',
        [
            "model/config.pbtxt input[0].dims: error CT204: input 'IN' has the dims [-1, 0, -2], and the "
            "server would not load 'model': model input 'IN' dimension must be integer >= 1, or -1; "
            "write the size of the dimension, or -1 where it varies",
        ],
    ),
    "CT204 reshape": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 1 reshape { shape: [ 1, 0 ] } }',
        [
            "model/config.pbtxt output[0].reshape.shape: error CT204: output 'OUT' has the reshape [1, "
            "0], and the server would not load 'model': model output 'OUT' reshape dimensions must be "
            "integer >= 1, or -1; write the size of the dimension, or -1 where it varies",
        ],
    ),
    "CT205": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }',
        [
            "model/config.pbtxt input[0].reshape: error CT205: input 'IN' is reshaped to nothing and "
            "max_batch_size is 0, so the server would not load 'model': model input 'IN' cannot have "
            "empty reshape for non-batching model as scalar tensors are not supported; leave the reshape "
            "out, or set max_batch_size if the model's first dimension is a batch",
        ],
    ),
    "CT206 size": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ 2, 6 ] reshape { shape: [ 3, 5 ] } }',
        [
            "model/config.pbtxt input[0].reshape.shape: error CT206: input 'IN' has the dims [2, 6] and "
            "is reshaped to [3, 5], and the server would not load 'model': model input 'IN' has "
            "different size for dims and reshape; write a reshape with the same number of elements, and "
            "a -1 for each -1 in dims",
        ],
    ),
    "CT206 variable sizes": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: -1 } }',
        [
            "model/config.pbtxt input[0].reshape.shape: error CT206: input 'IN' has the dims [-1, -1] "
            "and is reshaped to [-1], and the server would not load 'model': model input 'IN' has "
            "different number of variable-size dimensions for dims and reshape; write a reshape with the "
            "same number of elements, and a -1 for each -1 in dims",
        ],
    ),
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
    "CT210": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 }input { name: "IN" '
        'data_type: TYPE_FP32 dims: 4 }input { name: "B" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt input[1].name: error CT210: the input 'IN' is listed 2 times, and the "
            "server would refuse every request to 'model': expected 3 inputs but got 2 inputs; leave one "
            "of them out, or correct its name",
        ],
    ),
    "CT211": (
        'backend: "python"  output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }',
        [
            "model/config.pbtxt output[2].name: warning CT211: the output 'OUT' is listed 3 times, and "
            "the server would take the first and ignore the others, while clients see all of them in the "
            "model's metadata; leave one of them out, or correct its name",
        ],
    ),
    "CT211 with labels of one": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }',
        [
            "model/config.pbtxt output[1].name: warning CT211: the output 'OUT' is listed 2 times, and "
            "the server would take the first and ignore the others, while clients see all of them in the "
            "model's metadata; leave one of them out, or correct its name",
        ],
    ),
    "CT219 and nothing of CT211": (
        'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 4 label_filename: "a.txt" } '
        'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 '
        'dims: 4 label_filename: "b.txt" }',
        [
            "model/config.pbtxt output[2].label_filename: error CT219: the output 'OUT' is listed 3 "
            "times, 2 times with labels, and the server would not load 'model': multiple label files for "
            "'OUT'; list the output once, with one label_filename, or correct its name",
        ],
    ),
    "CT212": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" data_type: TYPE_INT32 source_input: [ "IN", "IN" ] }',
        [
            "model/config.pbtxt batch_input[0].source_input: error CT212: batch input 0 has 2 source "
            "inputs, and the server would not load 'model': batch input kind 'BATCH_ITEM_SHAPE' expects "
            "1 source input, got 2; write the one input that it is computed from",
        ],
    ),
    "CT213": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } batch_input { kind: '
        'BATCH_ITEM_SHAPE target_name: "S" source_input: "IN" }',
        [
            "model/config.pbtxt batch_input[0].data_type: error CT213: batch input 0 is TYPE_INVALID, "
            "and the server would not load 'model': batch input data type must be TYPE_INT32 or "
            "TYPE_FP32; write data_type: TYPE_INT32 or TYPE_FP32, whichever the model's tensor has",
        ],
    ),
    "CT214": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: "IN" source_input: "OUT" }',
        [
            "model/config.pbtxt batch_output[0].source_input: error CT214: batch output 0 names 'OUT', "
            "and the server would not load 'model': unknown source input name 'OUT'; name an input of "
            "this configuration",
            "model/config.pbtxt batch_output[0].target_name: error CT214: batch output 0 names 'IN', and "
            "the server would not load 'model': unknown target output name 'IN'; name an output of this "
            "configuration",
        ],
    ),
    "CT215 twice": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'target_name: [ "OUT", "OUT" ] source_input: "IN" }',
        [
            "model/config.pbtxt batch_output[0].target_name: error CT215: batch output 0 names 'OUT' "
            "twice, and the server would not load 'model': target output name 'OUT' can only be "
            "specified once; name each output that it is for once",
        ],
    ),
    "CT215 none": (
        'backend: "python" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        "data_type: TYPE_FP32 dims: 4 } batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "
        'source_input: "IN" }',
        [
            "model/config.pbtxt batch_output[0].target_name: error CT215: batch output 0 names no "
            "target, and the server would end with a segmentation fault (signal 11); name each output "
            "that it is for once",
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
NAMES = 'input { name: "IN" } output { name: "OUT" }'
SCALAR = 'input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('backend: "tensorrt"' + NAMES, id="TensorRT reads types and shapes"),
        pytest.param('platform: "tensorrt_plan"', id="TensorRT reads names"),
        pytest.param('backend: "dali"' + NAMES, id="DALI reads types and shapes"),
        pytest.param('backend: "onnxruntime"' + OUT, id="ONNX Runtime reads all inputs"),
        pytest.param('backend: "openvino"' + IN, id="OpenVINO reads all outputs"),
        pytest.param('backend: "own"' + NAMES, id="who knows what an own backend reads"),
        pytest.param('backend: "pytorch" runtime: "model.py"' + NAMES, id="PyTorch runs Python code"),
        pytest.param('backend: "pytorch" platform: "torch_aoti"', id="PyTorch runs a compiled model"),
        pytest.param('backend: "tensorrt"' + SCALAR, id="TensorRT reads the batch size"),
        pytest.param('backend: "onnxruntime"' + SCALAR, id="ONNX Runtime reads the batch size with the outputs"),
        pytest.param('backend: "openvino"' + SCALAR + OUT, id="OpenVINO reads the batch size"),
        pytest.param(
            'backend: "tensorrt" batch_input { data_type: TYPE_INT32 source_input: "IN" }', id="source not known yet"
        ),
    ],
)
def test_what_a_backend_fills_in_is_no_fault(write: Write, text: str) -> None:
    assert found_in(write({"model/config.pbtxt": text, "model/1/file": ""}, base={})) == []


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "pytorch"])
def test_what_a_backend_does_not_fill_in_is_a_fault(write: Write, backend: str) -> None:
    """ONNX Runtime and OpenVINO complete all inputs or none."""
    repository = write({"model/config.pbtxt": f'backend: "{backend}" {NAMES}', "model/1/file": ""}, base={})
    assert sorted((f.field, f.code) for f in repository.check() if f.code in OWN) == [
        ("input[0].data_type", "CT202"),
        ("input[0].dims", "CT203"),
        ("output[0].data_type", "CT202"),
        ("output[0].dims", "CT203"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(CODE + "    @staticmethod\n    def auto_complete_config(config): ...\n", id="by a function"),
        pytest.param(CODE.replace(":", "(Base):", 1), id="by a base class"),
        pytest.param("def", id="nobody knows"),
        pytest.param("x = 1", id="it is no model"),
    ],
)
def test_a_python_model_may_complete_itself(write: Write, code: str) -> None:
    text = 'backend: "python"' + NAMES + SCALAR.replace("IN", "SCALAR")
    assert found_in(write({"model/config.pbtxt": text, "model/1/model.py": code}, base={})) == []


def test_one_version_of_a_python_model_may_complete_itself(write: Write) -> None:
    text = f'backend: "python" version_policy {{ all {{ }} }} {NAMES}'
    files = {"model/config.pbtxt": text, "model/1/model.py": CODE, "model/2/model.py": "x = 1"}
    assert found_in(write(files, base={})) == []


def test_an_ensemble_quotes_what_is_said_of_it(write: Write) -> None:
    """Its tensors are compared with those of its steps before they are looked at by themselves."""
    tensors = 'input [ { dims: 4 }, { name: "A" }, { name: "B" data_type: TYPE_FP32 dims: [ 0, 4 ] } ]'
    scalar = 'output { name: "C" data_type: TYPE_FP32 dims: 1 reshape { } }'
    step = 'ensemble_scheduling { step { model_name: "child" model_version: -1 } }'
    repository = write(
        {
            "whole/config.pbtxt": f'platform: "ensemble" {tensors} {scalar} {step}',
            "whole/1/.gitkeep": "",
            "child/config.pbtxt": f'backend: "python" {IN} {OUT}',
            "child/1/model.py": CODE,
        },
        base={},
    )
    assert [(f.code, f.field, f.message.partition("'whole': ")[2]) for f in repository.check() if f.code in OWN] == [
        ("CT201", "input[0].name", "ensemble input '' for ensemble"),
        ("CT202", "input[1].data_type", "inconsistent data type: TYPE_INVALID is inferred from model"),
        ("CT203", "input[1].dims", "inconsistent shape: [] is inferred from model"),
        (
            "CT204",
            "input[2].dims",
            "inconsistent shape: [0,4] is inferred from model, or where the step has -1 there: model input 'B' "
            "dimension must be integer >= 1, or -1",
        ),
        ("CT205", "output[0].reshape", "inconsistent shape: [] is inferred from model"),
    ]


SOUND: Mapping[str, str] = {
    "a scalar with batching": f'max_batch_size: 8 {SCALAR} output {{ name: "OUT" data_type: TYPE_FP32 dims: -1 }}',
    "a reshape around variable sizes": """
        input { name: "IN" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }
    """,
    "a format of three dims": 'input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 4, 3 ] format: FORMAT_NHWC }',
    "an optional input": IN[:-1] + " optional: true }" + OUT,
    "an optional input twice": IN + IN[:-1] + " optional: true }" + OUT,
    "a name on both sides": IN + OUT.replace("OUT", "IN"),
    "ragged input": f"""
        max_batch_size: 8 {IN[:-1]} allow_ragged_batch: true }} {OUT}
        batch_input {{ kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "IN" }}
        batch_output {{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT" source_input: "IN" }}
    """,
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
