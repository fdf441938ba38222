"""The backend `tensorrt` on a machine without a GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cdk_triton_local.triton.backends.onnx_model import OnnxModel
from cdk_triton_local.triton.backends.plan import PROFILES, onnx_in_plan
from cdk_triton_local.triton.backends.triton_model import StandIn

__all__ = ["TritonPythonModel"]


class TritonPythonModel(StandIn):
    """Runs the graph in a stand-in plan: `model.plan`, or the file that `default_model_filename` names."""

    def load(self, directory: Path) -> str:
        """Load the graph."""
        path = directory / (self.config.get("default_model_filename") or "model.plan")
        if not path.exists():
            raise ValueError(f"there is no {path.name} in the version directory {directory.name}")
        self._model = OnnxModel(onnx_in_plan(path.read_bytes(), name=path.name), self.config)
        self._profiles = _served_profiles(json.loads(self._model.metadata.get(PROFILES, "[]")), self.config)
        # The profile of a shape tensor bounds its values.
        self._bounded = {
            each["name"]
            for each in self.config.get("input", [])
            if not (each.get("is_shape_tensor") or each.get("allow_ragged_batch"))
        }
        return "stand-in for the backend tensorrt: ONNX Runtime on the CPU in full precision, not a TensorRT plan"

    def compute(self, tensors: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        """Run the graph.

        Raises:
            ValueError: an input is outside every profile that the instances serve.
        """
        faults = [self._fault(profile, tensors) for profile in self._profiles]
        if faults and None not in faults:
            raise ValueError(faults[0])
        return self._model.run(tensors, outputs)

    def _fault(self, profile: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> str | None:
        """In the words of the backend (`ValidateDimension` and `SetInputBindings`, tensorrt_backend)."""
        for name, bounds in profile.items():
            shape = tensors[name].shape if name in self._bounded and name in tensors else ()
            for index, (low, size, high) in enumerate(zip(bounds["minimum"], shape, bounds["maximum"], strict=False)):
                if not low <= size <= high:
                    return (
                        f"request specifies invalid shape for input '{name}' for {self.config['name']}_0. Error "
                        f"details: model expected the shape of dimension {index} to be between {low} and {high} but "
                        f"received {size}"
                    )
        return None


def _served_profiles(profiles: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The profiles that `instance_group` names, by their index; the first one without `profile`."""
    named = [str(each) for group in config.get("instance_group", []) for each in group.get("profile", [])]
    return [profile for index, profile in enumerate(profiles) if str(index) in (named or ["0"])]
