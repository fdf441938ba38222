"""Recipes: declared builds that add files to a repository in the image that serves it."""

from cdk_triton.artifacts.recipes.conda import CondaEnvironment
from cdk_triton.artifacts.recipes.dali import DaliPipeline
from cdk_triton.artifacts.recipes.onnx_export import OnnxExport
from cdk_triton.artifacts.recipes.parity import Parity, Tolerance
from cdk_triton.artifacts.recipes.recipe import BuildRecipe, recipes_of
from cdk_triton.artifacts.recipes.s3_file import S3File
from cdk_triton.artifacts.recipes.tensorrt import TensorRTPlan

__all__ = [
    "BuildRecipe",
    "CondaEnvironment",
    "DaliPipeline",
    "OnnxExport",
    "Parity",
    "S3File",
    "TensorRTPlan",
    "Tolerance",
    "recipes_of",
]
