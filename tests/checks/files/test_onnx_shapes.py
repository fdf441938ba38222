"""The rules CT134 to CT136: whether the shapes in an ONNX file are those of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.onnx_models import BATCHED, IN, OUT, PREFIX, onnx_model, written

if TYPE_CHECKING:
    from sample_repositories import Change, Write


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
    assert [str(f) for f in found if f.code.startswith(("CT12", "CT13"))] == []


@pytest.mark.parametrize(
    ("tensors", "file", "batch", "found"),
    [
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
    ],
)
def test_contradictions(write: Write, tensors: str, file: Change, batch: int, found: tuple[str, str]) -> None:
    findings = written(write, tensors, file, batch).check()
    own = [(f.code, f.message) for f in findings if f.code.startswith("CT13")]
    assert own == [found]
