"""A backend that the images have and the local AWS does not: its models are rejected, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdk_triton_local.triton.backends import lacking
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Loads no model."""

    def load(self, directory: Path) -> str:
        """Say that the repository is not at fault."""
        raise ValueError(lacking(self.config["backend"]))

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Compute nothing."""
        raise NotImplementedError
