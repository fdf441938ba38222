"""AWS CDK constructs that put NVIDIA Triton model ensembles on Amazon SageMaker GPU endpoints.

All names below are public. docs/stability.md lists them by task, with those of `client`, `errors`, `checks`, `triton`
and `artifacts` that are public, too. Everything else is internal.

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
        WheelEnvironment,
    )
    from cdk_triton.checks import Report
    from cdk_triton.hosting import (
        AlarmThresholds,
        AllAtOnce,
        AsyncInference,
        Canary,
        Capacity,
        CodeBuildGpuBuilder,
        DataCapture,
        DeploymentPolicy,
        EndpointMetrics,
        EndpointMonitoring,
        EndpointVariant,
        ITritonArtifactStore,
        ITritonModel,
        Linear,
        MetricsConfig,
        NamePrefix,
        Rolling,
        SageMakerProcessingBuilder,
        ScalableCopyCount,
        ScalableInstanceCount,
        TritonArtifactStore,
        TritonComponent,
        TritonComponents,
        TritonEndpoint,
        TritonModel,
        TritonMultiModel,
        TritonPublisher,
        TritonVariant,
        add_vpc_endpoints,
        assert_no_errors,
    )
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import (
        ContainerEnvironment,
        Finding,
        GoldenRequest,
        ModelRepository,
        Rehearsal,
        Severity,
        Tolerance,
    )

__all__ = [
    "AlarmThresholds",
    "AllAtOnce",
    "AsyncInference",
    "BuildRecipe",
    "Canary",
    "Capacity",
    "CodeBuildGpuBuilder",
    "CondaEnvironment",
    "ContainerEnvironment",
    "DaliPipeline",
    "DataCapture",
    "DeploymentPolicy",
    "EndpointMetrics",
    "EndpointMonitoring",
    "EndpointVariant",
    "Finding",
    "GoldenRequest",
    "ITritonArtifactStore",
    "ITritonModel",
    "Linear",
    "MetricsConfig",
    "ModelRepository",
    "NamePrefix",
    "OnnxExport",
    "Parity",
    "Rehearsal",
    "Report",
    "Rolling",
    "S3File",
    "SageMakerProcessingBuilder",
    "ScalableCopyCount",
    "ScalableInstanceCount",
    "ServingPlatform",
    "Severity",
    "TensorRTPlan",
    "Tolerance",
    "TritonArtifactStore",
    "TritonComponent",
    "TritonComponents",
    "TritonEndpoint",
    "TritonModel",
    "TritonMultiModel",
    "TritonPublisher",
    "TritonVariant",
    "WheelEnvironment",
    "add_vpc_endpoints",
    "assert_no_errors",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
