"""The stand-ins for TensorRT and ONNX Runtime: graphs that agree with their configuration, and those that do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from cdk_triton_local.triton.backends import is_lacking
from cdk_triton_local.triton.backends.onnx_model import OnnxModel
from cdk_triton_local.triton.backends.plan import onnx_in_plan, stand_in_plan

if TYPE_CHECKING:
    from golden_messages import Messages


def graph(kind: int = TensorProto.FLOAT, operator: str = "Add", **attributes: Any) -> bytes:
    """OUT = operator(A, B) for two inputs of any batch size."""
    tensors = {name: helper.make_tensor_value_info(name, kind, ["batch", "length"]) for name in ("A", "B", "OUT")}
    node = helper.make_node(operator, ["A", "B"], ["OUT"], **attributes)
    made = helper.make_graph([node], "graph", [tensors["A"], tensors["B"]], [tensors["OUT"]])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def config(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> dict[str, Any]:
    return {"backend": "onnxruntime"} | {
        side: [{"name": name, "data_type": kind} for name, kind in tensors.items()]
        for side, tensors in (("input", inputs), ("output", outputs))
    }


AB = {"A": "TYPE_FP32", "B": "TYPE_FP32"}
OUT = {"OUT": "TYPE_FP32"}


def test_a_graph_runs_from_a_file_and_from_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(graph())
    ones = np.ones((2, 3), np.float32)
    for source in (path, graph()):
        [result] = OnnxModel(source, config(AB, OUT)).run({"A": ones, "B": ones}, ["OUT"])
        assert np.array_equal(result, ones + 1)


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (AB | {"C": "TYPE_FP32"}, OUT, "unexpected inference input 'C', allowed inputs are: A, B"),
        (AB, {"NO": "TYPE_FP32"}, "unexpected inference output 'NO', allowed outputs are: OUT"),
    ],
    ids=["input", "output"],
)
def test_a_tensor_that_the_graph_has_not_is_rejected_in_tritons_words(inputs: Any, outputs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        OnnxModel(graph(), config(inputs, outputs))


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        pytest.param(AB | {"B": "TYPE_INT32"}, OUT, id="another type"),
        pytest.param({"A": "TYPE_FP32"}, OUT, id="missing input"),
    ],
)
def test_a_configuration_that_disagrees_is_rejected(messages: Messages, inputs: Any, outputs: Any) -> None:
    with messages.raises(ValueError):
        OnnxModel(graph(), config(inputs, outputs))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(config({}, OUT), id="no input"),
        pytest.param(config(AB, {}), id="no output"),
        pytest.param(config(AB, OUT) | {"batch_input": [{"kind": "BATCH_ELEMENT_COUNT"}]}, id="an input of the batch"),
    ],
)
def test_a_model_that_only_the_backend_can_run_is_no_fault(messages: Messages, given: Any) -> None:
    with messages.raises(ValueError) as rejected:
        OnnxModel(graph(), given)
    assert is_lacking(str(rejected.value))


def test_what_is_no_graph_is_rejected(messages: Messages) -> None:
    with pytest.raises(ValueError, match="INVALID_PROTOBUF") as rejected:
        OnnxModel(b"no graph", config(AB, OUT))
    messages.record("ValueError", str(rejected.value).partition(": ")[0])


@pytest.mark.parametrize(
    ("triton", "in_onnx", "in_numpy"),
    [
        ("TYPE_BOOL", TensorProto.BOOL, np.bool_),
        ("TYPE_UINT8", TensorProto.UINT8, np.uint8),
        ("TYPE_INT32", TensorProto.INT32, np.int32),
        ("TYPE_INT64", TensorProto.INT64, np.int64),
        ("TYPE_FP16", TensorProto.FLOAT16, np.float16),
        ("TYPE_FP64", TensorProto.DOUBLE, np.float64),
    ],
)
def test_a_type_is_the_same_on_both_sides(triton: str, in_onnx: int, in_numpy: type[np.generic]) -> None:
    model = OnnxModel(graph(in_onnx, "Concat", axis=0), config(dict.fromkeys("AB", triton), {"OUT": triton}))
    ones = np.ones((1, 2), in_numpy)
    [result] = model.run({"A": ones, "B": ones}, ["OUT"])
    assert (result.dtype, result.shape) == (ones.dtype, (2, 2))


def test_strings_travel_as_bytes() -> None:
    typed = dict.fromkeys("AB", "TYPE_STRING")
    model = OnnxModel(graph(TensorProto.STRING, "Concat", axis=0), config(typed, {"OUT": "TYPE_STRING"}))
    [result] = model.run({"A": np.array([["grün".encode()]], object), "B": np.array([[b""]], object)}, ["OUT"])
    assert result.tolist() == [["grün"], [""]]
    [result] = model.run({"A": result, "B": result}, ["OUT"])  # as the state of a sequence does
    assert result.tolist() == [["grün"], [""]] * 2


def test_a_plan_holds_its_graph() -> None:
    assert onnx_in_plan(stand_in_plan(graph()), name="model.plan") == graph()


@pytest.mark.parametrize("content", [b"", b"ftrt\x00\x00\x01\x02", graph()], ids=["empty", "plan", "graph"])
def test_another_plan_is_rejected_with_the_mend(messages: Messages, content: bytes) -> None:
    with messages.raises(ValueError):
        onnx_in_plan(content, name="model.plan")
