"""Repositories whose network a recipe builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["write_network"]

CONFIG = """
name: "net"
platform: "tensorrt_plan"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""


def write_network(directory: Path, operator: str, value: float, domain: str = "") -> None:
    """Write a model `net` whose network is `operator(x, value)`."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy")
    node = helper.make_node(operator, ["x", "value"], ["y"], domain=domain)
    values = [numpy_helper.from_array(np.full(3, value, dtype=np.float32), "value")]
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("example.com", 1)]
    model = helper.make_model(helper.make_graph([node], "net", [x], [y], values), opset_imports=versions, ir_version=8)
    (directory / "net").mkdir(parents=True)
    (directory / "net" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    onnx.save(model, directory / "net" / "model.onnx")
