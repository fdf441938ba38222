"""The rules CT130 to CT133 and CT138: ONNX files and their configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import CONFIG, IN, OUT, external, onnx_model, written

if TYPE_CHECKING:
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("tensors", "file", "batch"),
    [
        pytest.param("", onnx_model(), 8, id="the backend completes both"),
        pytest.param("", onnx_model("float[4] IN", "float[4] OUT"), 0, id="and without batches"),
        pytest.param(IN.format(4), onnx_model(), 8, id="the backend completes the outputs"),
        pytest.param(
            IN.format(4), onnx_model("float[N, 4] IN", "float[N, 4] OUT, float[N] MORE"), 8, id="more outputs"
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
    ("outputs", "fix"),
    [
        ("float[N, 4] OUT", "write 'OUT' if that is meant"),
        ("float[N, 4] OUT, float[N, 4] MORE", "name one of the file's outputs"),
    ],
)
def test_the_last_name_of_both_is_meant(write: Write, outputs: str, fix: str) -> None:
    (finding,) = written(write, IN.format(4) + OUT.format(4).replace("OUT", "z"), onnx_model(outputs=outputs)).check()
    assert (finding.code, finding.fix) == ("CT131", fix)


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
    fix = "give it a name that ends in .ort, in default_model_filename as well"
    assert [str(finding) for finding in findings] == [
        f"model/1/{name}: error CT130: the file {message}, and the server would not load 'model'; "
        + (fix if content == ORT else "export the model again")
    ] * (message is not None)


def test_a_model_in_a_directory_of_its_own(write: Write) -> None:
    files = {"model/1/model.onnx/model.onnx": external("w.bin"), "model/1/model.onnx/w.bin": "0123456789abcdef"}
    assert write({"model/config.pbtxt": 'backend: "onnxruntime"', **files}, base={}).check() == ()
