"""Recipes: declared builds that add files to a repository in the image that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.conda import CondaEnvironment
    from cdk_triton.artifacts.recipes.dali import DaliPipeline
    from cdk_triton.artifacts.recipes.onnx_export import OnnxExport
    from cdk_triton.artifacts.recipes.parity import Parity
    from cdk_triton.artifacts.recipes.recipe import BuildRecipe, recipes_of
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.artifacts.recipes.tensorrt import TensorRTPlan
    from cdk_triton.artifacts.recipes.wheels import WheelEnvironment
    from cdk_triton.triton.rehearsal import Tolerance

__all__ = [
    "BuildRecipe",
    "CondaEnvironment",
    "DaliPipeline",
    "OnnxExport",
    "Parity",
    "S3File",
    "TensorRTPlan",
    "Tolerance",
    "WheelEnvironment",
    "recipes_of",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
