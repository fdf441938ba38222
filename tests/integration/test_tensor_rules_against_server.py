"""The real tritonserver as judge of CT201 to CT229: inputs, outputs, warm-ups, metrics, parameters.

What it cannot see here, because its backends do nothing or it is too old, is named in `OUT_OF_SIGHT`; what a real
backend refuses is in `test_model_rules_against_python_backend.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cdk_triton.checks import rules
from judging.scheduling import Files, Refusal, write

OWN = tuple(f"CT{number}" for number in range(201, 230))

OUT_OF_SIGHT = {
    "CT210": "the server loads it, and refuses every request",
    "CT211": "a warning",
    "CT216": "the backends refuse it",
    "CT217": "the backends refuse it",
    "CT218": "PyTorch refuses it",
    "CT223": "a warning",
    "CT224": "a warning",
    "CT225": "the backends refuse it",
    "CT227": "24.10 does not know the field",
    "CT228": "the backends refuse it",
    "CT229": "the backends refuse it",
}

CODE = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 }'
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'
LABELLED = OUT[:-1] + 'label_filename: "labels.txt" }'
LABELS = {"model/labels.txt": "cat\ndog\nbird\nfish"}


def model(text: str) -> Files:
    return {"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": CODE}


def warm_up(given: str, text: str = IN + OUT) -> Files:
    return model(f'{text} model_warmup {{ name: "first" batch_size: 1 {given} }}')


def given(text: str, name: str = "IN") -> str:
    return f'inputs {{ key: "{name}" value {{ {text} }} }}'


def ensemble(tensors: str, text: str = "") -> Files:
    step = 'model_name: "child" model_version: -1'
    maps = 'input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }'
    return {
        "whole/config.pbtxt": f'platform: "ensemble" {tensors} {text}'
        f" ensemble_scheduling {{ step {{ {step} {maps} }} }}",
        "whole/1/.gitkeep": "",
        "child/config.pbtxt": f'backend: "python" {IN} {OUT}',
        "child/1/model.py": CODE,
    }


FILE = "data_type: TYPE_FP32 dims: 4 input_data_file: 'data'"
ZEROS = "data_type: TYPE_FP32 dims: 4 zero_data: true"
COUNT = 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" '
SCATTER = "batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE "

REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "I/O: name": ("CT201", model("input { data_type: TYPE_FP32 dims: 4 }" + OUT), "model input must specify 'name'"),
    "name of an output": (
        "CT201",
        model(IN + "output { data_type: TYPE_FP32 dims: 4 }"),
        "model output must specify 'name'",
    ),
    "name in an ensemble": (
        "CT201",
        ensemble(IN + OUT + "input { data_type: TYPE_FP32 dims: 4 }"),
        "ensemble input '' for ensemble",
    ),
    "name of an output of an ensemble": (
        "CT201",
        ensemble(IN + OUT + "output { data_type: TYPE_FP32 dims: 4 }"),
        "ensemble output '' for ensemble",
    ),
    "I/O: data_type": (
        "CT202",
        model('input { name: "IN" dims: 4 }' + OUT),
        "model input 'IN' must specify 'data_type'",
    ),
    "data_type with a backend that completes nothing": (
        "CT202",
        {"model/config.pbtxt": 'backend: "identity" input { name: "INPUT0" dims: 4 }' + OUT, "model/1/data": ""},
        "model input 'INPUT0' must specify 'data_type'",
    ),
    "dims with a backend that completes nothing": (
        "CT203",
        {"model/config.pbtxt": 'backend: "repeat" input { name: "IN" data_type: TYPE_INT32 }', "model/1/data": ""},
        "model input 'IN' must specify 'dims'",
    ),
    "data_type TYPE_INVALID": (
        "CT202",
        model(IN + 'output { name: "OUT" data_type: TYPE_INVALID dims: 4 }'),
        "model output 'OUT' must specify 'data_type'",
    ),
    "data_type in an ensemble": (
        "CT202",
        ensemble('input { name: "IN" dims: 4 }' + OUT),
        "inconsistent data type: TYPE_INVALID is inferred from model",
    ),
    "I/O: dims": (
        "CT203",
        model(IN + 'output { name: "OUT" data_type: TYPE_FP32 }'),
        "model output 'OUT' must specify 'dims'",
    ),
    "dims in an ensemble": (
        "CT203",
        ensemble('input { name: "IN" data_type: TYPE_FP32 }' + OUT),
        "inconsistent shape: [] is inferred from model",
    ),
    "dim >= 1 or -1": (
        "CT204",
        model('input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 0 ] }' + OUT),
        "model input 'IN' dimension must be integer >= 1, or -1",
    ),
    "dim -2": (
        "CT204",
        model(IN + 'output { name: "OUT" data_type: TYPE_FP32 dims: -2 }'),
        "model output 'OUT' dimension must be integer >= 1, or -1",
    ),
    "dim of a reshape": (
        "CT204",
        model('input { name: "IN" data_type: TYPE_FP32 dims: 4 reshape { shape: 0 } }' + OUT),
        "model input 'IN' reshape dimensions must be integer >= 1, or -1",
    ),
    "dim in an ensemble": (
        "CT204",
        ensemble(IN + 'output { name: "OUT" data_type: TYPE_FP32 dims: -2 }'),
        "inconsistent shape: [-2] is inferred from model",
    ),
    "reshape to a scalar": (
        "CT205",
        model('input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }' + OUT),
        "model input 'IN' cannot have empty reshape for non-batching model as scalar tensors are not supported",
    ),
    "reshape element count": (
        "CT206",
        model('input { name: "IN" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 3 ] } }' + OUT),
        "model input 'IN' has different size for dims and reshape",
    ),
    "reshape of four elements to a scalar": (
        "CT206",
        model("max_batch_size: 8 " + IN[:-1] + "reshape { } }" + OUT),
        "model input 'IN' has different size for dims and reshape",
    ),
    "reshape of any size to a scalar": (
        "CT206",
        model('max_batch_size: 8 input { name: "IN" data_type: TYPE_FP32 dims: -1 reshape { } }' + OUT),
        "model input 'IN' has different size for dims and reshape",
    ),
    "reshape with fewer variable sizes": (
        "CT206",
        model('input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: -1 } }' + OUT),
        "model input 'IN' has different number of variable-size dimensions for dims and reshape",
    ),
    "reshape around variable sizes": (
        "CT206",
        model(IN + 'output { name: "OUT" data_type: TYPE_FP32 dims: [ 2, -1 ] reshape { shape: [ -1, 2 ] } }'),
        "model output 'OUT' has different size for dims and reshape",
    ),
    "format": (
        "CT207",
        model('input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 4 ] format: FORMAT_NHWC }' + OUT),
        "model input NHWC/NCHW require 3 dims",
    ),
    "format in an ensemble": (
        "CT207",
        ensemble(IN[:-1] + "format: FORMAT_NCHW }" + OUT),
        "model input NHWC/NCHW require 3 dims",
    ),
    "shape tensor": (
        "CT208",
        model(IN + OUT[:-1] + "is_shape_tensor: true }"),
        "shape tensors are only supported for TensorRT platform",
    ),
    "non-linear format": (
        "CT209",
        model(IN[:-1] + "is_non_linear_format_io: true }" + OUT),
        "Non-linear IO format is only supported for the TensorRT platform",
    ),
    "non-linear format of two dims": (
        "CT209",
        {
            "model/config.pbtxt": 'platform: "tensorrt_plan" instance_group { kind: KIND_CPU }'
            f'{IN} output {{ name: "OUT" data_type: TYPE_FP16 dims: [ 4, 4 ] is_non_linear_format_io: true }}',
            "model/1/model.plan": "",
        },
        "Non-linear IO format output requires 3 dims",
    ),
    "batch input without source": (
        "CT212",
        model(IN + OUT + COUNT + "data_type: TYPE_FP32 }"),
        "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0",
    ),
    "batch output without source": (
        "CT212",
        model(IN + OUT + SCATTER + 'target_name: "OUT" }'),
        "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0",
    ),
    "data type of a batch input": (
        "CT213",
        model(IN + OUT + COUNT + 'data_type: TYPE_INT64 source_input: "IN" }'),
        "batch input data type must be TYPE_INT32 or TYPE_FP32",
    ),
    "source of a batch input": (
        "CT214",
        model(IN + OUT + COUNT + 'data_type: TYPE_FP32 source_input: "COUNT" }'),
        "unknown source input name 'COUNT'",
    ),
    "source of a batch output": (
        "CT214",
        model(IN + OUT + SCATTER + 'target_name: "OUT" source_input: "OUT" }'),
        "unknown source input name 'OUT'",
    ),
    "target of a batch output": (
        "CT214",
        model(IN + OUT + SCATTER + 'target_name: "IN" source_input: "IN" }'),
        "unknown target output name 'IN'",
    ),
    "batch input in an ensemble": (
        "CT213",
        ensemble(IN + OUT, COUNT + 'data_type: TYPE_FP16 source_input: "IN" }'),
        "batch input data type must be TYPE_INT32 or TYPE_FP32",
    ),
    "target of a batch output twice": (
        "CT215",
        model(IN + OUT + SCATTER + 'target_name: [ "OUT", "OUT" ] source_input: "IN" }'),
        "target output name 'OUT' can only be specified once",
    ),
    "labels twice": ("CT219", {**model(IN + LABELLED + LABELLED), **LABELS}, "multiple label files for 'OUT'"),
    "labels of the first and the last": (
        "CT219",
        {**model(IN + LABELLED + OUT + LABELLED), **LABELS},
        "multiple label files for 'OUT'",
    ),
    "labels twice in two files": (
        "CT219",
        {**model(IN + LABELLED + LABELLED.replace("labels", "others")), **LABELS, "model/others.txt": ""},
        "multiple label files for 'OUT'",
    ),
    "labels twice in an ensemble": (
        "CT219",
        {**ensemble(IN + LABELLED + LABELLED), "whole/labels.txt": "cat"},
        "multiple label files for 'OUT'",
    ),
    "warm-up of open shape": (
        "CT220",
        warm_up(given("data_type: TYPE_FP32 dims: -1 zero_data: true")),
        "warmup setting expects all variable-size dimensions are specified for input 'IN'",
    ),
    "warm-up without data": (
        "CT220",
        warm_up(given("data_type: TYPE_FP32 dims: 4")),
        "warmup setting expects input 'IN' to have input_data_type set",
    ),
    "warm-up file beside a directory that is absent": (
        "CT221",
        {**warm_up(given(FILE.replace("'data'", "'../data'"))), "model/data": "0123456789abcdef"},
        "failed to open text file for read model/warmup/../data: No such file or directory",
    ),
    "warm-up file that is a directory": (
        "CT221",
        {**warm_up(given(FILE)), "model/warmup/data/part": "0123456789abcdef"},
        "std::length_error",
    ),
    "warm-up file missing": ("CT221", warm_up(given(FILE)), "failed to open text file for read"),
    "warm-up file too short": (
        "CT221",
        {**warm_up(given(FILE)), "model/warmup/data": "0123456789abcde"},
        "warmup setting expects 16 bytes, but the data provided from dataonly has 15 bytes",
    ),
    "warm-up data type": (
        "CT222",
        warm_up(given("data_type: TYPE_STRING dims: 4 zero_data: true")),
        "inference input 'IN' data-type is 'BYTES', but model",
    ),
    "warm-up without data type": (
        "CT222",
        warm_up(given("dims: 4 zero_data: true")),
        "inference input 'IN' data-type is '<invalid>', but model",
    ),
    "warm-up shape": (
        "CT222",
        warm_up(given("data_type: TYPE_FP32 dims: 5 zero_data: true")),
        "unexpected shape for input 'IN' for model",
    ),
    "warm-up with the batch": (
        "CT222",
        warm_up(given("data_type: TYPE_FP32 dims: [ 1, 4 ] zero_data: true"), "max_batch_size: 8 " + IN + OUT),
        "unexpected shape for input 'IN' for model",
    ),
    "warm-up without shape": (
        "CT222",
        warm_up(given("data_type: TYPE_FP32 zero_data: true")),
        "unexpected shape for input 'IN' for model",
    ),
    "warm-up without input": ("CT222", warm_up(""), "expected 1 inputs"),
    "warm-up of a misspelt input": ("CT222", warm_up(given(ZEROS, "INN")), "expected 1 inputs"),
    "warm-up with an optional input": (
        "CT222",
        warm_up("", IN + OUT + 'input { name: "SCALE" data_type: TYPE_FP32 dims: 1 optional: true }'),
        "expected number of inputs between",
    ),
    "metric tag": ("CT226", model(IN + OUT + 'metric_tags { key: "a-b" value: "" }'), "Invalid label name"),
    "metric tag with an underscore": (
        "CT226",
        model(IN + OUT + 'metric_tags { key: "_a" value: "" }'),
        "Invalid label name",
    ),
    "metric tag of an ensemble": (
        "CT226",
        ensemble(IN + OUT, 'metric_tags { key: "a:b" value: "" }'),
        "Invalid label name",
    ),
}


def errors_of(root: Path, files: Files) -> list[tuple[str, str]]:
    """Code and message of what these rules call an error."""
    return [(f.code, f.message) for f in write(root, files).check() if f.severity == "error" and f.code in OWN]


@pytest.mark.parametrize(("code", "files", "words"), REFUSED.values(), ids=REFUSED)
def test_the_server_rejects_in_the_words_quoted(
    tmp_path: Path, refusal: Refusal, code: str, files: Files, words: str
) -> None:
    ((found, message),) = errors_of(tmp_path / "repository", files)
    assert found == code
    assert words in message
    said = refusal(write(tmp_path / "repository", {}))
    assert said is not None, "the server loaded it"
    assert words in said


def test_every_rule_is_judged_or_out_of_sight() -> None:
    judged = {code for code, _, _ in REFUSED.values()}
    assert judged | set(OUT_OF_SIGHT) == {each.code for each in rules() if each.code in OWN}
    assert not judged & set(OUT_OF_SIGHT)


LOADED: Mapping[str, Files] = {
    "sound": model(IN + OUT),
    "no tensors": model(""),
    "any size": model('input { name: "IN" data_type: TYPE_STRING dims: [ -1, 1 ] }' + OUT),
    "a scalar with batching": model('max_batch_size: 1 input { name: "IN" data_type: TYPE_FP32 dims: 1 reshape { } }'),
    "a scalar of two dims": model(
        'max_batch_size: 1 input { name: "IN" data_type: TYPE_FP32 dims: [1, 1] reshape { } }'
    ),
    "a reshape around variable sizes": model(
        'input { name: "IN" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }'
    ),
    "a format": model('input { name: "IN" data_type: TYPE_FP32 dims: [ 4, 4, 3 ] format: FORMAT_NHWC }'),
    "CT210: the same input twice": model(IN + IN + OUT),
    "CT211: the same output twice": model(IN + OUT + OUT),
    "CT211: labels once": {**model(IN + OUT + LABELLED + OUT), **LABELS},
    "an optional input twice": model(IN + IN[:-1] + "optional: true }" + OUT),
    "a tensor on both sides": model(IN + OUT.replace("OUT", "IN")),
    "an ensemble with an optional input": ensemble(IN[:-1] + "optional: true allow_ragged_batch: true }" + OUT),
    "a batch input": model(IN + OUT + COUNT + 'data_type: TYPE_INT32 source_input: "IN" }'),
    "a batch output": model(IN + OUT + SCATTER + 'target_name: "OUT" source_input: "IN" }'),
    "a warm-up": warm_up(given(ZEROS)),
    "a warm-up from a file": {**warm_up(given(FILE)), "model/warmup/data": "0123456789abcdef and more"},
    "a warm-up from a file in a directory": {
        **warm_up(given("data_type: TYPE_FP32 dims: 4 input_data_file: '/deep/data'")),
        "model/warmup/deep/data": "0123456789abcdef",
    },
    "a warm-up of any size": warm_up(
        given("data_type: TYPE_FP32 dims: [ 7, 0 ] random_data: true"),
        'input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }' + OUT,
    ),
    "a warm-up of text": warm_up(
        given("data_type: TYPE_STRING dims: 2 random_data: true"),
        'input { name: "IN" data_type: TYPE_STRING dims: 2 }' + OUT,
    ),
    "a warm-up without the optional input": warm_up(
        given(ZEROS), IN + OUT + 'input { name: "SCALE" data_type: TYPE_FP32 dims: 1 optional: true }'
    ),
    "a warm-up with the optional input alone": warm_up(
        given(ZEROS, "SCALE"), IN + OUT + 'input { name: "SCALE" data_type: TYPE_FP32 dims: 4 optional: true }'
    ),
    "CT223: a warm-up with another input": warm_up(given(ZEROS) + given(ZEROS, "OTHER")),
    "CT224: a warm-up of no batch": model(IN + OUT + "model_warmup { inputs { key: 'X' value { } } }"),
    "metric tags": model(IN + OUT + 'metric_tags { key: "1a_" value: "é -" } metric_tags { key: "" value: "" }'),
}


@pytest.mark.parametrize("files", LOADED.values(), ids=LOADED)
def test_the_server_loads_what_is_no_error(tmp_path: Path, refusal: Refusal, files: Files) -> None:
    errors = errors_of(tmp_path / "repository", files)
    assert [code for code, _ in errors] in ([], ["CT210"])
    assert refusal(write(tmp_path / "repository", {})) is None
