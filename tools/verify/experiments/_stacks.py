"""What several experiments deploy: a store that goes away, and a repository of a few lines."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore

__all__ = ["PLATFORM", "outputs", "repository", "store"]

PLATFORM = "26.05/ml.g5.xlarge"

_CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }
"""
_MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + 1)]) for value in values]
"""


def store(stack: cdk.Stack, **arguments: Any) -> TritonArtifactStore:
    """A store whose bucket goes away with its stack, and whose name is an output."""
    found = TritonArtifactStore(
        stack, "Store", removal_policy=cdk.RemovalPolicy.DESTROY, auto_delete_objects=True, **arguments
    )
    outputs(stack, Bucket=found.bucket.bucket_name)
    return found


def outputs(stack: cdk.Stack, **values: str) -> None:
    """Outputs of a stack, which may have the names of its constructs."""
    for name, value in values.items():
        cdk.CfnOutput(Construct(stack, f"OutputOf{name}"), name, value=value).override_logical_id(name)


def repository(model: str = "adder") -> ModelRepository:
    """A repository with one Python model, in a temporary directory, which the run of the experiment removes."""
    root = Path(tempfile.mkdtemp(prefix="cdk-triton-verify-")) / "models"
    (root / model / "1").mkdir(parents=True)
    (root / model / "config.pbtxt").write_text(_CONFIG, encoding="utf-8")
    (root / model / "1" / "model.py").write_text(_MODEL, encoding="utf-8")
    return ModelRepository.from_directory(root)
