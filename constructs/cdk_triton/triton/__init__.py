"""Model configuration, repositories, releases and options of the Triton server.

The package is internal but for `serve_arguments` and `ModelRepository`; users import the rest from `cdk_triton`.

Modules that need protobuf are imported at their first use, because a repository with cached answers is not parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.findings import Finding, Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.releases import Release, release, releases
from cdk_triton.triton.repository import Mode, ModelRepository, Recipe, RepositoryFile
from cdk_triton.triton.serve import serve_arguments, server_environment

if TYPE_CHECKING:
    from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep, EnsembleTensor
    from cdk_triton.triton.model_config import format_model_config, parse_model_config
    from cdk_triton.triton.rehearsal import GoldenRequest, Rehearsal, Tolerance
    from cdk_triton.triton.schema import SCHEMA_RELEASE, ModelConfig

__all__ = [
    "SCHEMA_RELEASE",
    "ContainerEnvironment",
    "EnsembleGraph",
    "EnsembleStep",
    "EnsembleTensor",
    "Finding",
    "GoldenRequest",
    "Mode",
    "Model",
    "ModelConfig",
    "ModelRepository",
    "Recipe",
    "Rehearsal",
    "Release",
    "RepositoryFile",
    "Severity",
    "Tolerance",
    "format_model_config",
    "parse_model_config",
    "release",
    "releases",
    "serve_arguments",
    "server_environment",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
