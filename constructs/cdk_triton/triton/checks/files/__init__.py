"""CT1xx: what is in a model's directory."""

from __future__ import annotations

from cdk_triton.triton.checks.files import (
    configuration_file,
    model_files,
    onnx_models,
    onnx_requirements,
    onnx_sequences,
    onnx_shapes,
    python_environments,
    python_models,
    python_tensors,
    tensorrt_plans,
    version_directories,
)

__all__ = [
    "configuration_file",
    "model_files",
    "onnx_models",
    "onnx_requirements",
    "onnx_sequences",
    "onnx_shapes",
    "python_environments",
    "python_models",
    "python_tensors",
    "tensorrt_plans",
    "version_directories",
]
