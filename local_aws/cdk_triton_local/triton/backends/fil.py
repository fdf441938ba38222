"""The backend `fil` on a machine without a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdk_triton.tree_models.parameters import FILES, FilParameters
from cdk_triton_local.triton.backends import RELEASE, lacking
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs the file of `model_type`, or the file that `default_model_filename` names."""

    def load(self, directory: Path) -> str:
        """Load the tree model."""
        path = directory / (self.config.get("default_model_filename") or self._default_name())
        if not path.exists():
            raise ValueError(f"there is no {path.name} in the version directory {directory.name}")
        if reason := lacking("fil"):
            raise ValueError(reason)
        from cdk_triton_local.triton.backends.forest import ForestModel

        self._model = ForestModel(path, self.config, os.environ.get(RELEASE))
        return "stand-in for the backend fil: Treelite on the CPU, through the Python backend"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Predict."""
        rows = tensors["input__0"]
        if rows.dtype != np.float32:
            raise ValueError(f"incorrect type {rows.dtype} for input with required type float32")
        found = self._model.run(rows)
        return [found for _ in outputs]  # output__0, the only output of a model that ForestModel accepts

    def _default_name(self) -> str:
        given = {name: each["string_value"] for name, each in self.config.get("parameters", {}).items()}
        kind = FilParameters(given, None).model_type
        if kind not in FILES:
            raise ValueError(f"{kind} not recognized as a valid serialization format.")
        return FILES[kind]
