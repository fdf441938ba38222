"""The data types that the PyTorch backend has."""

from __future__ import annotations

__all__ = ["TORCH_TYPES"]

TORCH_TYPES = frozenset({"BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"})
"""The types of tensors, without `TYPE_`: `ModelConfigDataTypeToTorchType` in src/libtorch_utils.cc of
pytorch_backend. Text is not a tensor."""
