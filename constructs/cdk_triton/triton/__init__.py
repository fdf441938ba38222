"""What the Triton server accepts: model configuration, repositories, checks, releases, server flags."""

from __future__ import annotations

from cdk_triton.triton.ensemble import EnsembleGraph, EnsembleStep, EnsembleTensor
from cdk_triton.triton.environment import ContainerEnvironment
from cdk_triton.triton.findings import Finding, Severity
from cdk_triton.triton.model_config import format_model_config, parse_model_config
from cdk_triton.triton.releases import Release, release, releases
from cdk_triton.triton.repository import Mode, Model, ModelRepository, Platform, Recipe, RepositoryFile
from cdk_triton.triton.schema import SCHEMA_RELEASE, ModelConfig
from cdk_triton.triton.serve import serve_arguments, server_environment

__all__ = [
    "SCHEMA_RELEASE",
    "ContainerEnvironment",
    "EnsembleGraph",
    "EnsembleStep",
    "EnsembleTensor",
    "Finding",
    "Mode",
    "Model",
    "ModelConfig",
    "ModelRepository",
    "Platform",
    "Recipe",
    "Release",
    "RepositoryFile",
    "Severity",
    "format_model_config",
    "parse_model_config",
    "release",
    "releases",
    "serve_arguments",
    "server_environment",
]
