"""Runs in a Python with ONNX Runtime: describes a network, writes the inputs of a comparison, and compares outputs.

`python parity_driver.py QUESTION.json ANSWER.json`; see `programs.run_driver`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# ONNX Runtime's names of types, Triton's, and numpy's.
_TYPES = {
    "tensor(bool)": ("TYPE_BOOL", "bool"),
    "tensor(uint8)": ("TYPE_UINT8", "uint8"),
    "tensor(uint16)": ("TYPE_UINT16", "uint16"),
    "tensor(uint32)": ("TYPE_UINT32", "uint32"),
    "tensor(uint64)": ("TYPE_UINT64", "uint64"),
    "tensor(int8)": ("TYPE_INT8", "int8"),
    "tensor(int16)": ("TYPE_INT16", "int16"),
    "tensor(int32)": ("TYPE_INT32", "int32"),
    "tensor(int64)": ("TYPE_INT64", "int64"),
    "tensor(float16)": ("TYPE_FP16", "float16"),
    "tensor(float)": ("TYPE_FP32", "float32"),
    "tensor(double)": ("TYPE_FP64", "float64"),
}
# Triton's and trtexec's words for types and numpy's; numpy has no bfloat16.
_NUMPY = {**dict(_TYPES.values()), "TYPE_BF16": "bf16", "fp16": "float16", "fp32": "float32"}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to `describe`, `write` or `compare`; or the reason for a missing answer."""
    try:
        return {"describe": describe, "write": write, "compare": compare}[question["action"]](question)
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this
        return {"error": f"ONNX Runtime cannot run {Path(question['onnx']).name}: {error}"}


def describe(question: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the network; -1 for a dimension that is not fixed."""
    return {
        "inputs": [
            {
                "name": tensor.name,
                "data_type": _TYPES.get(tensor.type, (tensor.type,))[0],
                "dims": [size if isinstance(size, int) and size >= 0 else -1 for size in tensor.shape],
            }
            for tensor in _session(question).get_inputs()
        ]
    }


def write(question: dict[str, Any]) -> dict[str, Any]:
    """Write the arrays of an `.npz` as raw files; the answer has their dimensions."""
    import numpy as np

    with np.load(question["data"], allow_pickle=False) as found:
        arrays = {tensor["name"]: found[tensor["name"]] for tensor in question["inputs"]}
    for tensor in question["inputs"]:
        array, data_type = arrays[tensor["name"]], _NUMPY[tensor["data_type"]]
        if data_type == "bf16":
            raw = (array.astype("<f4").view("<u4") >> 16).astype("<u2")
        else:
            raw = array.astype(np.dtype(data_type).newbyteorder("<"))
        raw.tofile(tensor["file"])
    return {"dims": {name: list(array.shape) for name, array in arrays.items()}}


def compare(question: dict[str, Any]) -> dict[str, Any]:
    """How far the TensorRT plan's outputs are from ONNX Runtime's, for the same inputs."""
    import onnxruntime

    session = _session(question)
    types = {tensor.name: _TYPES[tensor.type][1] for tensor in session.get_inputs()}
    feed = {}
    for tensor in question["inputs"]:
        if tensor["name"] in types:
            feed[tensor["name"]] = _values(tensor, _NUMPY[tensor["data_type"]]).astype(types[tensor["name"]])
    names = [tensor["name"] for tensor in question["outputs"]]
    references = session.run(names, feed)
    outputs = [_compared(tensor, reference) for tensor, reference in zip(question["outputs"], references)]
    return {"onnxruntime": onnxruntime.__version__, "outputs": outputs}


def _session(question: dict[str, Any]) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(question["onnx"], options, providers=["CPUExecutionProvider"])


def _compared(tensor: dict[str, Any], reference: Any) -> dict[str, Any]:
    import numpy as np

    if "values" in tensor:
        found = np.array(tensor["values"], np.float64).reshape(tensor["dims"])
    else:
        found = _values(tensor, _NUMPY.get(tensor["data_type"], tensor["data_type"])).astype(np.float64)
    expected = np.asarray(reference).astype(np.float64)
    if found.shape != expected.shape:
        return {"name": tensor["name"], "shape": list(found.shape), "reference_shape": list(expected.shape)}
    finite = np.isfinite(expected) & np.isfinite(found)
    # A NaN equals a NaN here, and an infinity only one of its sign.
    special = ~finite & ~((np.isnan(expected) & np.isnan(found)) | (expected == found))
    difference = np.abs(found - expected, where=finite, out=np.zeros(found.shape))
    magnitude = np.abs(expected, where=np.isfinite(expected), out=np.zeros(found.shape))
    return {
        "name": tensor["name"],
        "elements": int(expected.size),
        "max_absolute_error": float(difference.max(initial=0.0)),
        "largest_magnitude": float(magnitude.max(initial=0.0)),
        "special_values_differ": int(special.sum()),
    }


def _values(tensor: dict[str, Any], data_type: str) -> Any:
    import numpy as np

    if data_type == "bf16":
        halves = np.fromfile(tensor["file"], "<u2").astype(np.uint32)
        return (halves << 16).view(np.float32).reshape(tensor["dims"])
    return np.fromfile(tensor["file"], np.dtype(data_type).newbyteorder("<")).reshape(tensor["dims"])


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(_asked)), encoding="utf-8")
