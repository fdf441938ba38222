"""The rules CT201 to CT206, CT210, CT211 and CT219: inputs and outputs of configurations."""

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
    "an optional input twice": IN + IN[:-1] + " optional: true }" + OUT,
    "a name on both sides": IN + OUT.replace("OUT", "IN"),
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_the_server_takes_is_no_fault(write: Write, text: str) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": CODE}, base={})
    assert found_in(repository) == []
