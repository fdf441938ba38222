"""The backend `dali` on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdk_triton._dali_signature import signature_fault
from cdk_triton_local.triton.backends.dali_definition import definition_file, has_dali, numpy_pipeline, real_pipeline
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs the pipeline of `dali.py`; a row of a batch is one sample."""

    def load(self, directory: Path) -> str:
        """Import the pipeline definition."""
        if self.config["max_batch_size"] < 1:
            raise ValueError("max_batch_size is 0, but DALI works on batches; raise it")
        path = definition_file(directory, self.config.get("default_model_filename", ""))
        self._outputs = [output["name"] for output in self.config["output"]]
        batch_size = self.config["max_batch_size"]
        threads = self._parameter("num_threads", "1")
        is_real = has_dali()
        self._pipeline = (
            real_pipeline(path, batch_size=batch_size, threads=int(threads)) if is_real else numpy_pipeline(path)
        )
        outputs = self.config["output"]
        if self._parameter("split_along_outer_axis", ""):  # such an output has other dimensions than the pipeline's
            outputs = [{**output, "dims": []} for output in outputs]
        fault = signature_fault(self._pipeline.signature, self.config["input"], outputs, batch_size)
        if fault is not None:
            raise ValueError(fault)
        if is_real:
            return "stand-in for the backend dali: DALI with every operator on the CPU, through the Python backend"
        return "stand-in for the backend dali: numpy and Pillow, within one grey level of DALI"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Run the pipeline; its results are the configured outputs, in the order of both."""
        results = self._pipeline({name: list(tensor) for name, tensor in tensors.items()})
        by_name = {name: np.stack(samples) for name, samples in zip(self._outputs, results, strict=True)}
        return [by_name[name] for name in outputs]

    def _parameter(self, name: str, default: str) -> str:
        value: str = self.config.get("parameters", {}).get(name, {}).get("string_value", default)
        return value
