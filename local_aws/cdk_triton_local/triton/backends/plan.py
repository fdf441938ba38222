"""The stand-in for a TensorRT plan: a header, then the ONNX model that the plan would have been built from."""

from __future__ import annotations

from typing import Final

__all__ = ["PROFILES", "onnx_in_plan", "stand_in_plan"]

PROFILES: Final = "cdk-triton.profiles"
"""The key of the ONNX model's metadata under which the plan has its optimisation profiles, as JSON."""

_HEADER: Final = b"cdk-triton stand-in for a TensorRT plan, version 1\n"


def stand_in_plan(onnx: bytes) -> bytes:
    """The bytes that the local `trtexec` writes instead of a TensorRT plan; `onnx` is a serialised ONNX model."""
    return _HEADER + onnx


def onnx_in_plan(plan: bytes, *, name: str) -> bytes:
    """The ONNX model in a stand-in plan.

    Raises:
        ValueError: the file is a real TensorRT plan, or something else; `name` is the file.
    """
    if not plan.startswith(_HEADER):
        raise ValueError(
            f"{name} is not a stand-in plan, which the local AWS needs instead of a TensorRT plan for a GPU; build the "
            "plan locally from its ONNX model, or serve the ONNX model with the backend onnxruntime"
        )
    return plan[len(_HEADER) :]
