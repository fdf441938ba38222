"""AWS CDK constructs that put NVIDIA Triton model ensembles on Amazon SageMaker GPU endpoints.

The names below are imported when they are first used, so that `import cdk_triton` starts neither Node.js nor anything
else that the packages `triton`, `sagemaker`, `artifacts` and `client` do not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton.artifacts import (
        BuildRecipe,
        CondaEnvironment,
        DaliPipeline,
        OnnxExport,
        Parity,
        S3File,
        TensorRTPlan,
        Tolerance,
    )
    from cdk_triton.hosting import (
        AlarmThresholds,
        AllAtOnce,
        Canary,
        Capacity,
        CodeBuildGpuBuilder,
        DataCapture,
        EndpointMetrics,
        Linear,
        MetricsConfig,
        Rolling,
        SageMakerProcessingBuilder,
        TritonArtifactStore,
        TritonEndpoint,
        TritonModel,
        TritonMultiModel,
        TritonVariant,
        add_vpc_endpoints,
    )
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ContainerEnvironment, ModelRepository

__all__ = [
    "AlarmThresholds",
    "AllAtOnce",
    "BuildRecipe",
    "Canary",
    "Capacity",
    "CodeBuildGpuBuilder",
    "CondaEnvironment",
    "ContainerEnvironment",
    "DaliPipeline",
    "DataCapture",
    "EndpointMetrics",
    "Linear",
    "MetricsConfig",
    "ModelRepository",
    "OnnxExport",
    "Parity",
    "Rolling",
    "S3File",
    "SageMakerProcessingBuilder",
    "ServingPlatform",
    "TensorRTPlan",
    "Tolerance",
    "TritonArtifactStore",
    "TritonEndpoint",
    "TritonModel",
    "TritonMultiModel",
    "TritonVariant",
    "add_vpc_endpoints",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
