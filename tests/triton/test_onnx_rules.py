"""The rules CT125, CT126 and CT130 to CT139: whether an ONNX file agrees with its configuration and its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from tests.triton.conftest import Change, Write

CONFIG = """
backend: "onnxruntime"
max_batch_size: {batch}
{tensors}
"""
IN = 'input {{ name: "IN" data_type: TYPE_FP32 dims: {} }}'
OUT = 'output {{ name: "OUT" data_type: TYPE_FP32 dims: {} }}'

PREFIX = "the server would not load 'model': model 'model', tensor "
BATCHED = (
    "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete"
)


def onnx_model(
    inputs: str = "float[N, 4] IN", outputs: str = "float[N, 4] OUT", *, opset: int = 17, ir: int = 8
) -> str:
    return f'<ir_version: {ir}, opset_import: ["" : {opset}]> model ({inputs}) => ({outputs}) {{ OUT = Identity(IN) }}'


def written(write: Write, tensors: str, file: Change, batch: int = 8) -> ModelRepository:
    return write(
        {"model/config.pbtxt": CONFIG.format(batch=batch, tensors=tensors), "model/1/model.onnx": file}, base={}
    )


@pytest.mark.parametrize(
    ("tensors", "file", "batch"),
    [
        pytest.param("", onnx_model(), 8, id="the backend completes both"),
        pytest.param("", onnx_model("float[4] IN", "float[4] OUT"), 0, id="and without batches"),
        pytest.param(IN.format(4), onnx_model(), 8, id="the backend completes the outputs"),
        pytest.param(IN.format(-1) + OUT.format(-1), onnx_model("float[N, T] IN", "float[N, T] OUT"), 8, id="variable"),
        pytest.param(IN.format(7) + OUT.format(-1), onnx_model("float[N, T] IN", "float[N, T] OUT"), 8, id="narrower"),
        pytest.param(
            IN.format(4), onnx_model("float[N, 4] IN", "float[N, 4] OUT, float[N] MORE"), 8, id="more outputs"
        ),
        pytest.param(IN.format(4) + OUT.format(4), onnx_model("float[N, 4] IN", "float[] OUT"), 8, id="unknown rank"),
        pytest.param(
            IN.format("16 reshape { shape: [ 4, 4 ] }") + OUT.format(4),
            onnx_model("float[N, 4, 4] IN"),
            8,
            id="reshape",
        ),
        pytest.param(
            IN.format("1 reshape { shape: [ ] }") + OUT.format("1 reshape { shape: [ ] }"),
            onnx_model("float[N] IN", "float[N] OUT"),
            8,
            id="reshape to nothing",
        ),
        pytest.param(
            IN.format("-1 allow_ragged_batch: true") + OUT.format(4), onnx_model("float[N] IN"), 8, id="ragged"
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            '<ir_version: 8, opset_import: ["" : 17]> model (float[4] IN, float[4] B) => (float[4] OUT)'
            " <float[4] B = {1, 2, 3, 4}> { OUT = Add(IN, B) }",
            0,
            id="an input with a default",
        ),
        pytest.param(
            IN.format(4) + 'input { name: "B" data_type: TYPE_FP32 dims: 4 optional: true }' + OUT.format(4),
            '<ir_version: 8, opset_import: ["" : 17]> model (float[4] IN, float[4] B) => (float[4] OUT)'
            " <float[4] B = {1, 2, 3, 4}> { OUT = Add(IN, B) }",
            0,
            id="an input with a default that callers may give",
        ),
        pytest.param(
            IN.format(4)
            + OUT.format(4)
            + 'sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_START '
            "fp32_false_true: [ 0, 1 ] } } }",
            onnx_model("float[N, 4] IN, float[N, 1] START"),
            8,
            id="a control input",
        ),
    ],
)
def test_sound(write: Write, tensors: str, file: str, batch: int) -> None:
    found = written(write, tensors, file, batch).check()
    assert [str(f) for f in found if f.code.startswith(("CT12", "CT13"))] == []


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
        pytest.param("", b"", 8, ("CT130", "the file is empty, and the server would not load 'model'"), id="empty"),
        pytest.param(
            "",
            b"hello world",
            8,
            ("CT130", "the file is no ONNX file: Protobuf parsing failed, and the server would not load 'model'"),
            id="text",
        ),
        pytest.param(
            'input { name: "ln" data_type: TYPE_FP32 dims: 4 }',
            onnx_model(),
            8,
            (
                "CT131",
                "model/1/model.onnx has no input 'ln', and the server would not load 'model': unexpected inference "
                "input 'ln', allowed inputs are: IN",
            ),
            id="a name",
        ),
        pytest.param(
            OUT.format(4).replace("OUT", "OUTPUT"),
            onnx_model(),
            8,
            (
                "CT131",
                "model/1/model.onnx has no output 'OUTPUT', and the server would not load 'model': unexpected inference"
                " output 'OUTPUT', allowed outputs are: OUT",
            ),
            id="a name of an output",
        ),
        pytest.param(
            IN.format(4) + IN.format(4).replace("IN", "MORE"),
            onnx_model(),
            8,
            (
                "CT132",
                "the configuration names 'MORE' besides, for model/1/model.onnx has the inputs 'IN', and the server "
                "would not load it: unable to load model 'model', configuration expects 2 inputs, model provides 1",
            ),
            id="one input more",
        ),
        pytest.param(
            IN.format(4),
            onnx_model("float[N, 4] IN, int64[N] mask"),
            8,
            (
                "CT132",
                "the configuration lacks 'mask', for model/1/model.onnx has the inputs 'IN', 'mask', and the server "
                "would not load it: unable to load model 'model', configuration expects 1 inputs, model provides 2",
            ),
            id="one input less",
        ),
        pytest.param(
            IN.format(4).replace("FP32", "INT32"),
            onnx_model("string[N, 4] IN", "string[N, 4] OUT"),
            8,
            (
                "CT133",
                "the type is TYPE_INT32, and the server would not load it: unable to load model 'model', configuration"
                " expects datatype TYPE_INT32 for input 'IN', model provides TYPE_BYTES",
            ),
            id="a type",
        ),
        pytest.param(
            IN.format(5) + OUT.format(4),
            onnx_model(),
            8,
            (
                "CT134",
                "the input 'IN' has the dims [5], to which max_batch_size adds one, and in model/1/model.onnx it has "
                f"the shape [N, 4]; {PREFIX}'IN': the model expects 2 dimensions (shape [-1,4]) but the model "
                f"configuration specifies 2 dimensions {BATCHED} shape [-1,5])",
            ),
            id="a size",
        ),
        pytest.param(
            IN.format("[ 1, 4 ]") + OUT.format("[ -1, 4 ]"),
            onnx_model("float[4] IN"),
            0,
            (
                "CT134",
                "the input 'IN' has the dims [1, 4] and in model/1/model.onnx it has the shape [4]; "
                f"{PREFIX}'IN': the model expects 1 dimensions (shape [4]) but the model configuration specifies 2"
                " dimensions (shape [1,4])",
            ),
            id="a rank, without batches",
        ),
        pytest.param(
            IN.format(-1) + OUT.format(384),
            onnx_model("float[N, T] IN", "float[N, T] OUT"),
            8,
            (
                "CT136",
                "the shape is [-1,384] and in model/1/model.onnx it is [-1,-1]; unless ONNX Runtime finds out the size"
                " by itself, the server would not load it: model 'model', tensor 'OUT': the model expects 2 dimensions",
            ),
            id="an output that is as long as an input",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model("float[1, 4] IN"),
            8,
            (
                "CT135",
                "the server would not load it: model 'model', tensor 'IN': for the model to support batching the shape"
                " should have at least 1 dimension and the first dimension must be -1; but shape expected by the model "
                "is [1,4]",
            ),
            id="a fixed batch",
        ),
        pytest.param(
            IN.format(4),
            onnx_model("float[1, 4] IN"),
            8,
            (
                "CT135",
                "the first dimension of 'IN' in model/1/model.onnx is not variable: autofill failed for model 'model':"
                " model does not support batching while non-zero max_batch_size is specified",
            ),
            id="a fixed batch that the backend completes",
        ),
        pytest.param(
            IN.format(4) + OUT.format(7),
            onnx_model("float[N, 4] IN", "float[N, M] OUT"),
            8,
            (
                "CT136",
                "the shape is [-1,7] and in model/1/model.onnx it is [-1,-1]; unless ONNX Runtime finds out the size by"
                " itself, the server would not load it: model 'model', tensor 'OUT': the model expects 2 dimensions",
            ),
            id="an output of unknown size",
        ),
        pytest.param(
            "",
            onnx_model("float[N, 4] IN", "map(int64, float) OUT"),
            8,
            (
                "CT138",
                "'OUT' is a map, and the server would not load 'model': Unsupported ONNX Type 'ONNX_TYPE_MAP' for I/O"
                " 'OUT', expected 'ONNX_TYPE_TENSOR'",
            ),
            id="a map",
        ),
    ],
)
def test_contradictions(write: Write, tensors: str, file: Change, batch: int, found: tuple[str, str]) -> None:
    findings = written(write, tensors, file, batch).check()
    own = [(f.code, f.message) for f in findings if f.code.startswith("CT13")]
    assert own == [found]


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
        pytest.param(
            IN.format("[ -1, 4 ]") + OUT.format("[ -1, 4 ]"),
            onnx_model(),
            4,
            [
                "input[0].dims: error CT134: the input 'IN' has the dims [-1, 4], to which max_batch_size adds one, and"
                " in model/1/model.onnx it has the shape [N, 4] (likewise 'OUT'); "
                f"{PREFIX}'IN': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 3 "
                f"dimensions {BATCHED} shape [-1,-1,4]); take the first dimension out, for max_batch_size stands for it"
            ],
            id="the dimension of the batch is in the dims",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model(),
            0,
            [
                "input[0].dims: error CT134: the input 'IN' has the dims [4] and in model/1/model.onnx it has the shape"
                f" [N, 4] (likewise 'OUT'); {PREFIX}'IN': the model expects 2 dimensions (shape [-1,4]) but the model "
                "configuration specifies 1 dimensions (shape [4]); set max_batch_size, or put -1 in front of the dims"
            ],
            id="max_batch_size is missing",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model(outputs="float[4] OUT"),
            0,
            [
                "input[0].dims: error CT134: the input 'IN' has the dims [4] and in model/1/model.onnx it has the shape"
                f" [N, 4]; {PREFIX}'IN': the model expects 2 dimensions (shape [-1,4]) but the model configuration "
                "specifies 1 dimensions (shape [4]); write dims: [ -1, 4 ]"
            ],
            id="a model that takes no batches",
        ),
        pytest.param(
            IN.format("[ 5, 7 ]") + OUT.format("4 reshape { shape: [ 2, 2 ] }"),
            onnx_model("float[N, 4, ?] IN", "float[N, 4] OUT"),
            8,
            [
                "input[0].dims: error CT134: the input 'IN' has the dims [5, 7], to which max_batch_size adds one, and "
                f"in model/1/model.onnx it has the shape [N, 4, ?]; {PREFIX}'IN': the model expects 3 dimensions "
                f"(shape [-1,4,-1]) but the model configuration specifies 3 dimensions {BATCHED} shape [-1,5,7]); write"
                " dims: [ 4, 7 ], or export the model with another shape",
                "output[0].reshape.shape: error CT134: the output 'OUT' has the reshape [2, 2], to which max_batch_size"
                f" adds one, and in model/1/model.onnx it has the shape [N, 4]; {PREFIX}'OUT': the model expects 2 "
                f"dimensions (shape [-1,4]) but the model configuration specifies 3 dimensions {BATCHED} shape "
                "[-1,2,2]); write reshape { shape: [ 4 ] }, or export the model with another shape",
            ],
            id="each for a reason of its own",
        ),
    ],
)
def test_shapes(write: Write, tensors: str, file: str, batch: int, found: list[str]) -> None:
    own = [str(f) for f in written(write, tensors, file, batch).check() if f.code == "CT134"]
    assert own == [f"model/config.pbtxt {each}" for each in found]


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "codes"),
    [
        pytest.param(IN.format(4) + OUT.format(4), onnx_model(), -1, ["CT230"], id="CT230 says it"),
        pytest.param(IN.format(0) + OUT.format(4), onnx_model(), 8, ["CT204"], id="CT204 says it"),
        pytest.param(
            IN.format(4) + OUT.format("[ 2, 4 ]"),
            onnx_model("float[2, 4] IN", "float[N, 4] OUT"),
            0,
            ["CT134", "CT136"],
            id="the size of an output may be found out",
        ),
        pytest.param(IN.format(4), onnx_model(), 0, [], id="the backend sets max_batch_size"),
        pytest.param(IN.format("[ -1, 5 ]"), onnx_model(outputs="float[4] OUT"), 0, ["CT134"], id="it cannot"),
    ],
)
def test_what_is_certain_of_shapes(write: Write, tensors: str, file: str, batch: int, codes: list[str]) -> None:
    assert [f.code for f in written(write, tensors, file, batch).check()] == codes


@pytest.mark.parametrize(
    ("release", "opset", "ir", "words"),
    [
        ("24.09", 21, 10, []),
        ("24.09", 22, 10, ["Opset 22 is under development and support for this is limited"]),
        ("24.09", 21, 11, ["Unsupported model IR version: 11, max supported IR version: 10"]),
        ("25.09", 23, 11, []),
        ("26.05", 25, 13, []),
        ("26.05", 26, 13, ["Opset 26 is under development and support for this is limited"]),
    ],
)
def test_what_the_releases_onnx_runtime_reads(
    write: Write, release: str, opset: int, ir: int, words: list[str]
) -> None:
    repository = written(write, "", onnx_model(opset=opset, ir=ir))
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    found = [f for f in repository.check(platform=platform) if f.code == "CT137"]
    assert len(found) == len(words)
    assert all(text in finding.message for text, finding in zip(words, found, strict=True))


def external(location: str, length: int = 16) -> str:
    return (
        '<ir_version: 8, opset_import: ["" : 17]> model (float[4] IN) => (float[4] OUT)'
        f' <float[4] W = ["location": "{location}", "length": "{length}"]> {{ OUT = Add(IN, W) }}'
    )


@pytest.mark.parametrize(
    ("location", "files", "release", "codes"),
    [
        ("w.bin", {}, None, ["CT139"]),
        ("w.bin", {"model/1/w.bin": "0123456789abcdef"}, None, []),
        ("w.bin", {"model/1/w.bin": "0123456789abcde"}, None, ["CT139"]),
        ("data/w.bin", {"model/1/data/w.bin": "0123456789abcdef"}, "26.03", []),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, None, ["CT126"]),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, "25.09", ["CT126"]),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, "26.03", ["CT125"]),
        ("../w.bin", {}, "25.09", ["CT139"]),
        ("../../shared/w.bin", {"shared/w.bin": "0123456789abcdef"}, None, ["CT126"]),
        ("/opt/w.bin", {}, None, ["CT126"]),
    ],
)
def test_weights_in_other_files(
    write: Write, location: str, files: dict[str, str], release: str | None, codes: list[str]
) -> None:
    repository = write(
        {"model/config.pbtxt": 'backend: "onnxruntime"', "model/1/model.onnx": external(location), **files}, base={}
    )
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = repository.check(platform=platform, default_model="model")
    assert [finding.code for finding in findings if finding.code in ("CT125", "CT126", "CT139")] == codes


START = (
    'sequence_batching { control_input { name: "S" '
    "control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }"
)
STATE = 'sequence_batching { state { input_name: "SI" output_name: "SO" data_type: TYPE_FP32 dims: 4 } }'
RAGGED = 'input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }'


@pytest.mark.parametrize(
    ("tensors", "inputs", "outputs", "found"),
    [
        pytest.param(IN.format(4) + START, "float[N, 4] IN, float[N, 1] S", "float[N, 4] OUT", [], id="a control"),
        pytest.param(
            IN.format(4) + START,
            "float[N, 4] IN",
            "float[N, 4] OUT",
            [("CT147", "configuration specified sequence control 'S', but model does not provide that input")],
            id="no control",
        ),
        pytest.param(
            IN.format(4) + START,
            "float[N, 4] IN, float[N] S",
            "float[N, 4] OUT",
            [("CT147", "sequence control 'S' in model has dims [] but dims [1] is expected")],
            id="a control of another shape",
        ),
        pytest.param(RAGGED, "float[T] IN", "float[N, 4] OUT", [], id="ragged"),
        pytest.param(
            RAGGED,
            "float[N, T] IN",
            "float[N, 4] OUT",
            [("CT148", "with shape [-1]  for ragged input 'IN', model provides [-1,-1]")],
            id="ragged, another shape",
        ),
        pytest.param(
            IN.format(4) + STATE, "float[N, 4] IN, float[N, 4] SI", "float[N, 4] OUT, float[N, 4] SO", [], id="a state"
        ),
        pytest.param(
            IN.format(4) + STATE,
            "float[N, 4] IN",
            "float[N, 4] OUT",
            [("CT149", "has no input 'SI' for the state"), ("CT149", "has no output 'SO' for the state")],
            id="no state",
        ),
    ],
)
def test_sequences(write: Write, tensors: str, inputs: str, outputs: str, found: list[tuple[str, str]]) -> None:
    findings = written(write, tensors + OUT.format(4), onnx_model(inputs, outputs)).check()
    own = [finding for finding in findings if finding.code.startswith(("CT13", "CT14"))]
    assert [finding.code for finding in own] == [code for code, _ in found]
    assert all(words in finding.message for finding, (_, words) in zip(own, found, strict=True))


@pytest.mark.parametrize(
    ("outputs", "mend"),
    [
        ("float[N, 4] OUT", "write 'OUT' if that is meant"),
        ("float[N, 4] OUT, float[N, 4] MORE", "name one of the file's outputs"),
    ],
)
def test_the_last_name_of_both_is_meant(write: Write, outputs: str, mend: str) -> None:
    (finding,) = written(write, IN.format(4) + OUT.format(4).replace("OUT", "z"), onnx_model(outputs=outputs)).check()
    assert (finding.code, finding.mend) == ("CT131", mend)


ORT = b"\x14\0\0\0ORTM" + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.ort", ORT, None),
        ("model.ORT", ORT, None),
        ("model.ort", b"weights", "is not in ONNX Runtime's own format: ORT model verification failed"),
        ("model.ort", onnx_model().encode(), "is not in ONNX Runtime's own format: ORT model verification failed"),
        ("model.bin", ORT, "is no ONNX file: Protobuf parsing failed"),
    ],
)
def test_onnx_runtimes_own_format(write: Write, name: str, content: bytes, message: str | None) -> None:
    config = CONFIG.format(batch=8, tensors=IN.format(4) + OUT.format(4)) + f'default_model_filename: "{name}"'
    findings = write({"model/config.pbtxt": config, f"model/1/{name}": content}, base={}).check()
    mend = "give it a name that ends in .ort, in default_model_filename as well"
    assert [str(finding) for finding in findings] == [
        f"model/1/{name}: error CT130: the file {message}, and the server would not load 'model'; "
        + (mend if content == ORT else "export the model again")
    ] * (message is not None)


def test_a_model_in_a_directory_of_its_own(write: Write) -> None:
    files = {"model/1/model.onnx/model.onnx": external("w.bin"), "model/1/model.onnx/w.bin": "0123456789abcdef"}
    assert write({"model/config.pbtxt": 'backend: "onnxruntime"', **files}, base={}).check() == ()
