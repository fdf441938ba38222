"""The rules CT134 to CT136: whether the shapes in an ONNX file are those of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import IN, OUT, onnx_model, written

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
        pytest.param(
            IN.format("[ -1, 4 ]") + OUT.format("[ -1, 4 ]"),
            onnx_model(),
            4,
            [("CT134", "model/config.pbtxt", "input[0].dims")],
            id="the dimension of the batch is in the dims",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model(),
            0,
            [("CT134", "model/config.pbtxt", "input[0].dims")],
            id="max_batch_size is missing",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model(outputs="float[4] OUT"),
            0,
            [("CT134", "model/config.pbtxt", "input[0].dims")],
            id="a model that takes no batches",
        ),
        pytest.param(
            IN.format("[ 5, 7 ]") + OUT.format("4 reshape { shape: [ 2, 2 ] }"),
            onnx_model("float[N, 4, ?] IN", "float[N, 4] OUT"),
            8,
            [
                ("CT134", "model/config.pbtxt", "input[0].dims"),
                ("CT134", "model/config.pbtxt", "output[0].reshape.shape"),
            ],
            id="each for a reason of its own",
        ),
    ],
)
def test_shapes(messages: Messages, write: Write, tensors: str, file: str, batch: int, found: list[Place]) -> None:
    own = messages.of(f for f in written(write, tensors, file, batch).check() if f.code == "CT134")
    assert own == found


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
    ("tensors", "file", "batch"),
    [
        pytest.param(IN.format(-1) + OUT.format(-1), onnx_model("float[N, T] IN", "float[N, T] OUT"), 8, id="variable"),
        pytest.param(IN.format(7) + OUT.format(-1), onnx_model("float[N, T] IN", "float[N, T] OUT"), 8, id="narrower"),
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
    ],
)
def test_sound(write: Write, tensors: str, file: str, batch: int) -> None:
    found = written(write, tensors, file, batch).check()
    assert [f for f in found if f.code.startswith(("CT12", "CT13"))] == []


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
        pytest.param(
            IN.format(5) + OUT.format(4),
            onnx_model(),
            8,
            ("CT134", "model/config.pbtxt", "input[0].dims"),
            id="a size",
        ),
        pytest.param(
            IN.format("[ 1, 4 ]") + OUT.format("[ -1, 4 ]"),
            onnx_model("float[4] IN"),
            0,
            ("CT134", "model/config.pbtxt", "input[0].dims"),
            id="a rank, without batches",
        ),
        pytest.param(
            IN.format(-1) + OUT.format(384),
            onnx_model("float[N, T] IN", "float[N, T] OUT"),
            8,
            ("CT136", "model/config.pbtxt", "output[0].dims"),
            id="an output that is as long as an input",
        ),
        pytest.param(
            IN.format(4) + OUT.format(4),
            onnx_model("float[1, 4] IN"),
            8,
            ("CT135", "model/1/model.onnx", "IN"),
            id="a fixed batch",
        ),
        pytest.param(
            IN.format(4),
            onnx_model("float[1, 4] IN"),
            8,
            ("CT135", "model/config.pbtxt", "max_batch_size"),
            id="a fixed batch that the backend completes",
        ),
        pytest.param(
            IN.format(4) + OUT.format(7),
            onnx_model("float[N, 4] IN", "float[N, M] OUT"),
            8,
            ("CT136", "model/config.pbtxt", "output[0].dims"),
            id="an output of unknown size",
        ),
    ],
)
def test_contradictions(messages: Messages, write: Write, tensors: str, file: Change, batch: int, found: Place) -> None:
    findings = written(write, tensors, file, batch).check()
    own = messages.of(f for f in findings if f.code.startswith("CT13"))
    assert own == [found]
