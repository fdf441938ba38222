"""The backend `onnxruntime` on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdk_triton_local.triton.backends.onnx_model import OnnxModel
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs `model.onnx`, or the file that `default_model_filename` names."""

    def load(self, directory: Path) -> str:
        """Load the graph."""
        path = directory / (self.config.get("default_model_filename") or "model.onnx")
        if not path.exists():
            raise ValueError(f"there is no {path.name} in the version directory {directory.name}")
        self._model = OnnxModel(path, self.config)
        return "stand-in for the backend onnxruntime: ONNX Runtime on the CPU, through the Python backend"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Run the graph."""
        return self._model.run(tensors, outputs)
