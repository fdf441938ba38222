"""Models with an ONNX file, as text: what the tests of the rules about them share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import onnx.numpy_helper
import onnx.parser

from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from sample_repositories.written import Change, Write

CONFIG = """
backend: "onnxruntime"
max_batch_size: {batch}
{tensors}
"""
IN = 'input {{ name: "IN" data_type: TYPE_FP32 dims: {} }}'
OUT = 'output {{ name: "OUT" data_type: TYPE_FP32 dims: {} }}'

# What the ONNX Runtime backend says of a tensor whose shape is another one.
PREFIX = "the server would not load 'model': model 'model', tensor "
BATCHED = (
    "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete"
)


def _changed(change: str) -> bytes:
    """A graph that adds weights to its input, with something missing."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> model (float[2, 2] IN) => (float[2, 2] OUT)'
        " <float[2, 2] W = {1, 2, 3, 4}> { OUT = Add(IN, W) }"
    )
    weights = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(model.graph.initializer[0]), "W")
    if change == "no opset":
        del model.opset_import[:]
    elif change == "an input without a type":
        model.graph.input[0].ClearField("type")
    elif change == "too few bytes":
        weights.raw_data = weights.raw_data[:-4]
    elif change == "too many bytes":
        weights.raw_data += b"\0"
    model.graph.initializer[0].CopyFrom(weights)
    return model.SerializeToString()


INCOMPLETE = {
    change: _changed(change) for change in ("no opset", "an input without a type", "too few bytes", "too many bytes")
}


def onnx_model(
    inputs: str = "float[N, 4] IN", outputs: str = "float[N, 4] OUT", *, opset: int = 17, ir: int = 8
) -> str:
    names = ", ".join(re.findall(r"(\w+)(?=, \w+[\[(]|$)", outputs))  # made by an operator of which nothing is judged
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return f"{head} model ({inputs}) => ({outputs}) {{ {names} = com.microsoft.Attention() }}"


def written(write: Write, tensors: str, file: Change, batch: int = 8) -> ModelRepository:
    return write(
        {"model/config.pbtxt": CONFIG.format(batch=batch, tensors=tensors), "model/1/model.onnx": file}, base={}
    )


def external(location: str, length: int = 16) -> str:
    return (
        '<ir_version: 8, opset_import: ["" : 17]> model (float[4] IN) => (float[4] OUT)'
        f' <float[4] W = ["location": "{location}", "length": "{length}"]> {{ OUT = Add(IN, W) }}'
    )
