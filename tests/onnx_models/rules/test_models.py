"""The rules CT130 to CT134 and CT138: ONNX files and their configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import CONFIG, IN, INCOMPLETE, OUT, external, onnx_model, written

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


# An input of several lengths, and the place of each of them.
RAGGED = """
    input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "IN" }
"""


@pytest.mark.parametrize(
    ("tensors", "file", "batch"),
    [
        pytest.param(RAGGED, onnx_model("float[N] IN, float[N] COUNT"), 8, id="a batch input"),
        pytest.param(
            RAGGED.replace("ELEMENT_COUNT", "ITEM_SHAPE"),
            onnx_model("float[N] IN, float[N, 1] COUNT"),
            8,
            id="a batch input of two dimensions",
        ),
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
    assert [f for f in found if f.code.startswith(("CT12", "CT13"))] == []


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
        pytest.param("", b"", 8, ("CT130", "model/1/model.onnx", ""), id="empty"),
        *(
            pytest.param("", content, 0, ("CT130", "model/1/model.onnx", ""), id=name)
            for name, content in INCOMPLETE.items()
        ),
        pytest.param(
            "",
            b"hello world",
            8,
            ("CT130", "model/1/model.onnx", ""),
            id="text",
        ),
        pytest.param(
            'input { name: "ln" data_type: TYPE_FP32 dims: 4 }',
            onnx_model(),
            8,
            ("CT131", "model/config.pbtxt", "input[0].name"),
            id="a name",
        ),
        pytest.param(
            OUT.format(4).replace("OUT", "OUTPUT"),
            onnx_model(),
            8,
            ("CT131", "model/config.pbtxt", "output[0].name"),
            id="a name of an output",
        ),
        pytest.param(
            IN.format(4) + IN.format(4).replace("IN", "MORE"),
            onnx_model(),
            8,
            ("CT132", "model/config.pbtxt", "input"),
            id="one input more",
        ),
        pytest.param(
            IN.format(4),
            onnx_model("float[N, 4] IN, int64[N] mask"),
            8,
            ("CT132", "model/config.pbtxt", "input"),
            id="one input less",
        ),
        pytest.param(
            IN.format(4)
            + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "IN" }',
            onnx_model("float[N, 4] IN, float[N] COUNT, int64[N] mask"),
            8,
            ("CT132", "model/config.pbtxt", "input"),
            id="one input less beside a batch input",
        ),
        pytest.param(
            RAGGED,
            onnx_model("float[N] IN, float[N] COUNTS"),
            8,
            ("CT131", "model/config.pbtxt", "batch_input[0].target_name"),
            id="the name of a batch input",
        ),
        pytest.param(
            RAGGED,
            onnx_model("float[N] IN, int32[N] COUNT"),
            8,
            ("CT133", "model/config.pbtxt", "batch_input[0].data_type"),
            id="the type of a batch input",
        ),
        pytest.param(
            RAGGED,
            onnx_model("float[N] IN, int64[N] COUNT"),
            8,
            ("CT133", "model/config.pbtxt", "batch_input[0].data_type"),
            id="a type that no batch input has",
        ),
        pytest.param(
            RAGGED,
            onnx_model("float[N] IN, float[N, 1] COUNT"),
            8,
            ("CT134", "model/config.pbtxt", "batch_input[0].target_name"),
            id="the dimensions of a batch input",
        ),
        pytest.param(
            IN.format(4).replace("FP32", "INT32"),
            onnx_model("string[N, 4] IN", "string[N, 4] OUT"),
            8,
            ("CT133", "model/config.pbtxt", "input[0].data_type"),
            id="a type",
        ),
        pytest.param(
            "",
            onnx_model("float[N, 4] IN", "map(int64, float) OUT"),
            8,
            ("CT138", "model/1/model.onnx", ""),
            id="a map",
        ),
    ],
)
def test_contradictions(messages: Messages, write: Write, tensors: str, file: Change, batch: int, found: Place) -> None:
    findings = written(write, tensors, file, batch).check()
    own = messages.of(f for f in findings if f.code.startswith("CT13"))
    assert own == [found]


@pytest.mark.parametrize(
    ("outputs", "meant"),
    [
        pytest.param("float[N, 4] OUT", True, id="one"),
        pytest.param("float[N, 4] OUT, float[N, 4] MORE", False, id="one of two"),
    ],
)
def test_the_last_name_of_both_is_meant(messages: Messages, write: Write, outputs: str, meant: bool) -> None:
    tensors = IN.format(4) + OUT.format(4).replace("OUT", "z")
    findings = written(write, tensors, onnx_model(outputs=outputs)).check()
    assert messages.of(findings) == [("CT131", "model/config.pbtxt", "output[0].name")]
    assert ("'OUT'" in findings[0].fix) == meant


ORT = b"\x14\0\0\0ORTM" + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "codes"),
    [
        pytest.param("model.ort", ORT, [], id="its own"),
        pytest.param("model.ORT", ORT, [], id="its own, in capitals"),
        pytest.param("model.ort", b"weights", ["CT130"], id="not its own"),
        pytest.param("model.ort", onnx_model().encode(), ["CT130"], id="ONNX"),
        pytest.param("model.bin", ORT, ["CT130"], id="its own, with another name"),
    ],
)
def test_onnx_runtimes_own_format(
    messages: Messages, write: Write, name: str, content: bytes, codes: list[str]
) -> None:
    config = CONFIG.format(batch=8, tensors=IN.format(4) + OUT.format(4)) + f'default_model_filename: "{name}"'
    findings = write({"model/config.pbtxt": config, f"model/1/{name}": content}, base={}).check()
    assert messages.of(findings) == [(code, f"model/1/{name}", "") for code in codes]


def test_a_model_in_a_directory_of_its_own(write: Write) -> None:
    files = {"model/1/model.onnx/model.onnx": external("w.bin"), "model/1/model.onnx/w.bin": "0123456789abcdef"}
    assert write({"model/config.pbtxt": 'backend: "onnxruntime"', **files}, base={}).check() == ()
