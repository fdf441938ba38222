"""The backend `pytorch` on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdk_triton_local.triton.backends import lacking
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs `model.pt`, or the file that `default_model_filename` names, as TorchScript."""

    def load(self, directory: Path) -> str:
        """Load the module."""
        if reason := lacking("pytorch", self.config.get("platform", "")):
            raise ValueError(reason)
        path = directory / (self.config.get("default_model_filename") or "model.pt")
        if not path.exists():
            raise ValueError(f"unable to find {path.name!r} in the version directory {directory.name}")
        from cdk_triton_local.triton.backends.torch_model import TorchModel

        self._model = TorchModel(path, self.config)
        return "stand-in for the backend pytorch: PyTorch on the CPU, through the Python backend"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Call the module."""
        return self._model.run(tensors, outputs)
