"""The backend `pytorch` on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from cdk_triton_local.triton.backends import LACKING
from cdk_triton_local.triton.backends.triton_model import StandIn

if TYPE_CHECKING:
    from cdk_triton_local.triton.backends.torch_model import TorchModel

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs `model.pt`, or the file that `default_model_filename` names, as TorchScript."""

    def load(self, directory: Path) -> str:
        """Load the module."""
        if self.config.get("platform") == "torch_aoti":
            raise ValueError(
                f"{LACKING} the part of the backend pytorch that runs compiled PyTorch 2 archives; SageMaker's images "
                "from 26.03 on have it. Save the model as TorchScript to run it here"
            )
        path = directory / (self.config.get("default_model_filename") or "model.pt")
        if not path.exists():
            raise ValueError(f"unable to find {path.name!r} in the version directory {directory.name}")
        self._model = _module(path, self.config)
        return "stand-in for the backend pytorch: PyTorch on the CPU, through the Python backend"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Call the module."""
        return self._model.run(tensors, outputs)


def _module(path: Path, config: Mapping[str, Any]) -> TorchModel:
    if find_spec("torch") is None:
        raise ValueError(
            f"{LACKING} PyTorch, with which the local AWS runs models of the backend pytorch; "
            "SageMaker's image has this backend. Install PyTorch with: pip install 'cdk-triton[torch]'"
        )
    from cdk_triton_local.triton.backends.torch_model import TorchModel

    return TorchModel(path, config)
