"""An ONNX graph behind a Triton model configuration, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from cdk_triton_local.triton.backends import unsupported

__all__ = ["OnnxModel"]

# Triton's data types as ONNX Runtime writes them; Triton's backend has the same table (onnxruntime_utils.cc).
_TYPES: Final = {
    "TYPE_BOOL": "tensor(bool)",
    "TYPE_UINT8": "tensor(uint8)",
    "TYPE_UINT16": "tensor(uint16)",
    "TYPE_UINT32": "tensor(uint32)",
    "TYPE_UINT64": "tensor(uint64)",
    "TYPE_INT8": "tensor(int8)",
    "TYPE_INT16": "tensor(int16)",
    "TYPE_INT32": "tensor(int32)",
    "TYPE_INT64": "tensor(int64)",
    "TYPE_FP16": "tensor(float16)",
    "TYPE_FP32": "tensor(float)",
    "TYPE_FP64": "tensor(double)",
    "TYPE_STRING": "tensor(string)",
}


class OnnxModel:
    """A graph whose tensors are those of the configuration.

    Args:
        graph: the ONNX file, or its content.
        config: the model configuration as Triton hands it to a backend (its JSON form).

    Raises:
        ValueError: graph and configuration disagree, the graph cannot be read, or the stand-in does not do what the
            model needs.
    """

    def __init__(self, graph: Path | bytes, config: Mapping[str, Any]) -> None:
        options = onnxruntime.SessionOptions()
        threads = config.get("parameters", {}).get("intra_op_thread_count", {}).get("string_value", "0")
        options.intra_op_num_threads = int(threads)
        # Several models share this machine's processors: waiting threads give theirs back.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        source = str(graph) if isinstance(graph, Path) else graph
        try:
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions have no common base but this
            raise ValueError(f"ONNX Runtime cannot load the graph: {error}") from error
        _reject_unsupported(config)
        sequences = config.get("sequence_batching", {})
        of_server = {each["name"] for each in sequences.get("control_input", [])}
        of_server |= {each["input_name"] for each in sequences.get("state", [])}
        inputs = self._session.get_inputs()
        callers = [tensor for tensor in inputs if tensor.name not in of_server]
        self.inputs = _checked_datatypes("input", config["input"], callers, all_of_them=True)
        self.outputs = _checked_datatypes("output", config["output"], self._session.get_outputs(), all_of_them=False)
        self._strings = {tensor.name for tensor in inputs if tensor.type == _TYPES["TYPE_STRING"]}

    @property
    def metadata(self) -> Mapping[str, str]:
        """The graph's own metadata."""
        found: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        return found

    def run(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Compute `outputs`, in this order; strings travel as bytes, as Triton has them."""
        feed = {name: _text(tensor) if name in self._strings else tensor for name, tensor in tensors.items()}
        results: list[NDArray[Any]] = self._session.run(list(outputs), feed)
        return results


def _reject_unsupported(config: Mapping[str, Any]) -> None:
    """Reject what Triton's backends add to a configuration or to a batch."""
    for side in ("input", "output"):
        if not config.get(side):
            raise ValueError(
                f"{unsupported(config['backend'], f'a config.pbtxt without any {side}')}, which this backend completes "
                f"from the graph; write every {side} into config.pbtxt to run the model here"
            )
        if config.get(f"batch_{side}"):
            raise ValueError(f"{unsupported(config['backend'], f'batch_{side}')}; run the model on an endpoint")


def _checked_datatypes(
    side: str, configured: Sequence[Mapping[str, Any]], graph: Sequence[Any], *, all_of_them: bool
) -> dict[str, str]:
    types = {tensor.name: tensor.type for tensor in graph}
    result = {tensor["name"]: tensor["data_type"] for tensor in configured}
    for name, kind in result.items():
        if name not in types:
            raise ValueError(f"unexpected inference {side} {name!r}, allowed {side}s are: {', '.join(sorted(types))}")
        if _TYPES.get(kind) != types[name]:
            raise ValueError(f"inference {side} {name!r} is {kind} in config.pbtxt, but {types[name]} in the graph")
    missing = sorted(types.keys() - result.keys())
    if all_of_them and missing:
        raise ValueError(
            f"config.pbtxt does not name the graph's {side} {', '.join(map(repr, missing))}; write every {side} "
            "into config.pbtxt"
        )
    return result


def _text(tensor: NDArray[Any]) -> NDArray[Any]:
    texts = [value if isinstance(value, str) else value.decode() for value in tensor.reshape(-1)]  # str in a state
    return np.array(texts, dtype=object).reshape(tensor.shape)
