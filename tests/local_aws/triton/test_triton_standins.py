"""The stand-in backends below a real tritonserver: unchanged configurations, one log line each, errors at load."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from PIL import Image

from cdk_triton_local.triton.backends.plan import PROFILES, stand_in_plan

if TYPE_CHECKING:
    from golden_messages import Messages

TENSORS = """
max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }
instance_group { kind: KIND_GPU count: 1 gpus: [ 0 ] }
optimization { cuda { graphs: true } }
"""
ONNX_CONFIG = f'backend: "onnxruntime" {TENSORS} default_model_filename: "own.onnx"'
PLAN_CONFIG = f'platform: "tensorrt_plan" {TENSORS} dynamic_batching {{ max_queue_delay_microseconds: 200000 }}'

DALI_CONFIG = """
backend: "dali"
max_batch_size: 4
input { name: "IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] }
output { name: "PIXELS" data_type: TYPE_FP32 dims: [ 3, 6, 5 ] }
parameters { key: "num_threads" value { string_value: "2" } }
"""
DALI_PY = """
import nvidia.dali as dali
import nvidia.dali.types as types
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@dali.pipeline_def(batch_size=3, num_threads=1, device_id=0)
def pipe():
    images = dali.fn.external_source(device="cpu", name="IMAGE")
    images = dali.fn.decoders.image(images, device="mixed", output_type=types.RGB)
    images = dali.fn.resize(images, resize_x=5, resize_y=6)
    return dali.fn.crop_mirror_normalize(images, output_layout="CHW", mean=[127.5] * 3, std=[127.5] * 3)
"""

FOREST_CONFIG = """
backend: "fil"
max_batch_size: 4
input { name: "input__0" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "output__0" data_type: TYPE_FP32 dims: [ 3 ] }
instance_group { kind: KIND_GPU }
parameters { key: "model_type" value { string_value: "xgboost_ubj" } }
parameters { key: "is_classifier" value { string_value: "true" } }
parameters { key: "threshold" value { string_value: "0.5" } }
parameters { key: "predict_proba" value { string_value: "true" } }
"""
CORPUS = Path(__file__).parents[2] / "tree_models" / "corpus"
FOREST = "xgboost-3.2-multi.ubj"
TORCH_CONFIG = """
backend: "pytorch"
max_batch_size: 4
input { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "sum" data_type: TYPE_FP32 dims: [ 4 ] }
"""
TORCH = Path(__file__).parents[2] / "pytorch_models" / "files" / "function.pt"

SUM_CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }
sequence_batching {
  oldest { max_candidate_sequences: 4 }
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 100 ] } }
  state { input_name: "BEFORE" output_name: "AFTER" data_type: TYPE_FP32 dims: [ 1 ]
          initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } }
}
"""

ONE_ROW = '[{"IN": {"minimum": [1, 2], "optimum": [1, 2], "maximum": [1, 2]}}]'


def add_one(profiles: str = "[]") -> bytes:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in ("IN", "OUT")]
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [helper.make_node("Add", ["IN", "one"], ["OUT"])]
    graph = helper.make_graph(nodes, "add", tensors[:1], tensors[1:], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key=PROFILES, value=profiles)
    content: bytes = model.SerializeToString()
    return content


def sum_of_sequence() -> bytes:
    """OUT = AFTER = BEFORE + IN + START."""
    names = ("BEFORE", "IN", "START", "OUT", "AFTER")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1]) for name in names]
    nodes = [helper.make_node("Sum", names[:3], ["AFTER"]), helper.make_node("Identity", ["AFTER"], ["OUT"])]
    graph = helper.make_graph(nodes, "sum", tensors[:3], tensors[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, bench_in: Any, packed: Any) -> Iterator[Any]:
    bench = bench_in(tmp_path_factory.mktemp("standins"))
    bench.fleet(
        "fleet",
        onnx=packed({"m/config.pbtxt": ONNX_CONFIG, "m/1/own.onnx": add_one()}),
        plan=packed({"m/config.pbtxt": PLAN_CONFIG, "m/1/model.plan": stand_in_plan(add_one())}),
        profiles=packed({"m/config.pbtxt": PLAN_CONFIG, "m/1/model.plan": stand_in_plan(add_one(ONE_ROW))}),
        sum=packed({"m/config.pbtxt": SUM_CONFIG, "m/1/model.onnx": sum_of_sequence()}),
        forest=packed({"m/config.pbtxt": FOREST_CONFIG, "m/1/xgboost.ubj": (CORPUS / FOREST).read_bytes()}),
        dali=packed({"m/config.pbtxt": DALI_CONFIG, "m/1/dali.py": DALI_PY}),
        missing=packed({"m/config.pbtxt": f'backend: "openvino" {TENSORS}', "m/1/model.xml": "<net/>"}),
        torch=packed({"m/config.pbtxt": TORCH_CONFIG, "m/1/model.pt": TORCH.read_bytes()}),
        real=packed({"m/config.pbtxt": PLAN_CONFIG, "m/1/model.plan": b"ftrt" + bytes(100)}),
        rotate=packed({"m/config.pbtxt": DALI_CONFIG, "m/1/dali.py": DALI_PY.replace("fn.resize", "fn.rotate")}),
    )
    yield bench
    bench.host.close()


def introductions(bench: Any, backend: str) -> list[str]:
    """What the log has of lines in which the stand-in for a backend says what it is."""
    text: str = (bench.directory / "logs" / "fleet" / "AllTraffic.log").read_text()
    return re.findall(rf"\bstand-in\b[^\n]*\b{backend}: [^\n\"]*", text)


@pytest.mark.parametrize(("model", "backend"), [("onnx", "onnxruntime"), ("plan", "tensorrt")])
def test_a_graph_answers_under_its_own_backends_name(messages: Messages, fleet: Any, model: str, backend: str) -> None:
    assert fleet.answer("fleet", 1.0, 2.0, model=model) == [2.0, 3.0]
    (line,) = introductions(fleet, backend)  # not one per request
    messages.record("log", line)


def test_sequences_keep_their_implicit_state(fleet: Any) -> None:
    """Two at a time, the first of which begins again without an end."""
    found: dict[int | str, list[float]] = {7: [], "eight": []}
    for number in range(6):
        for sequence, sums in found.items():
            tensor = {"name": "IN", "shape": [1, 1], "datatype": "FP32", "data": [len(str(sequence))]}
            ends = number == 5 or (number == 2 and sequence == "eight")
            parameters = {"sequence_id": sequence, "sequence_start": number in (0, 3), "sequence_end": ends}
            body = json.dumps({"inputs": [tensor], "parameters": parameters}).encode()
            response = fleet.send("fleet", body, model="sum")
            assert response.status == 200, response.body
            sums += json.loads(response.body)["outputs"][0]["data"]
    assert found == {7: [101, 102, 103] * 2, "eight": [105, 110, 115] * 2}


def test_a_tree_model_answers_with_the_predictions_of_its_framework(messages: Messages, fleet: Any) -> None:
    expected = json.loads((CORPUS / "predictions.json").read_text())
    rows = np.array(expected["rows"][:4], np.float32)
    tensor = {"name": "input__0", "shape": list(rows.shape), "datatype": "FP32", "data": rows.reshape(-1).tolist()}
    response = fleet.send("fleet", json.dumps({"inputs": [tensor]}).encode(), model="forest")
    assert response.status == 200, response.body
    (output,) = json.loads(response.body)["outputs"]
    assert output["shape"] == [4, 3]
    assert np.allclose(np.reshape(output["data"], (4, 3)), expected[FOREST][:4], rtol=0, atol=1e-5)
    (line,) = introductions(fleet, "fil")
    messages.record("log", line)


@pytest.mark.slow
@pytest.mark.server
def test_the_image_determines_the_parameters_of_a_tree_model(fleet: Any, packed: Any) -> None:
    model = packed({"m/config.pbtxt": FOREST_CONFIG, "m/1/xgboost.ubj": (CORPUS / FOREST).read_bytes()})
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.08-py3"
    fleet.fleet("older", image=image, forest=model)
    response = fleet.send("older", b"{}", model="forest")
    assert response.status >= 400
    assert "Required parameter output_class not found in config" in json.loads(response.body)["OriginalMessage"]


def test_a_backend_that_only_the_images_have_is_named(fleet: Any) -> None:
    response = fleet.send("fleet", b"{}", model="missing")
    assert response.status >= 400
    said = "this machine does not have the backend openvino, for which the local AWS has no stand-in"
    assert said in json.loads(response.body)["OriginalMessage"]


@pytest.mark.skipif(find_spec("torch") is None, reason="the extra torch is not installed")
def test_torchscript_answers(fleet: Any) -> None:
    row = {"shape": [1, 4], "datatype": "FP32", "data": [1.0, 2.0, 3.0, 4.0]}
    response = fleet.send(
        "fleet", json.dumps({"inputs": [{"name": name, **row} for name in "yx"]}).encode(), model="torch"
    )
    assert response.status == 200, response.body
    (output,) = json.loads(response.body)["outputs"]
    assert output["data"] == [2.0, 4.0, 6.0, 8.0]
    (line,) = introductions(fleet, "pytorch")
    assert "PyTorch on the CPU" in line


def test_a_plan_rejects_what_its_profiles_do_not_accept(fleet: Any) -> None:
    assert fleet.answer("fleet", 1.0, 2.0, model="profiles") == [2.0, 3.0]
    two = {"name": "IN", "shape": [2, 2], "datatype": "FP32", "data": [1.0, 2.0, 3.0, 4.0]}
    error = json.loads(fleet.send("fleet", json.dumps({"inputs": [two]}).encode(), model="profiles").body)
    assert "dimension 0 to be between 1 and 1 but received 2" in error["OriginalMessage"]


def test_a_dali_pipeline_answers(fleet: Any) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (255, 0, 127)).save(buffer, format="PNG")
    data = np.frombuffer(buffer.getvalue(), np.uint8)
    tensor = {"name": "IMAGE", "shape": [1, len(data)], "datatype": "UINT8", "data": data.tolist()}
    response = fleet.send("fleet", json.dumps({"inputs": [tensor]}).encode(), model="dali")
    assert response.status == 200, response.body
    pixels = np.array(json.loads(response.body)["outputs"][0]["data"]).reshape(3, 6, 5)
    assert np.allclose(pixels[:, 0, 0], [1.0, -1.0, -0.5 / 127.5], atol=1e-6)
    assert len(introductions(fleet, "dali")) == 1


def test_a_picture_that_is_none_is_the_callers_error(fleet: Any) -> None:
    tensor = {"name": "IMAGE", "shape": [1, 3], "datatype": "UINT8", "data": [1, 2, 3]}
    response = fleet.send("fleet", json.dumps({"inputs": [tensor]}).encode(), model="dali")
    assert response.status == 424
    assert json.loads(response.body)["ErrorCode"].endswith("_FROM_MODEL")


def test_a_real_plan_is_rejected_when_it_is_loaded(fleet: Any) -> None:
    error = json.loads(fleet.invoke("fleet", 1.0, 2.0, model="real").body)
    assert "model.plan" in error["OriginalMessage"]
    assert error["OriginalStatusCode"] == 400


def test_an_unknown_operator_is_rejected_when_the_model_is_loaded(fleet: Any) -> None:
    error = json.loads(fleet.send("fleet", b"{}", model="rotate").body)
    if "stand-in for DALI" in error["OriginalMessage"]:  # without DALI
        assert "nvidia.dali.fn.rotate" in error["OriginalMessage"]
    assert error["OriginalStatusCode"] == 400
