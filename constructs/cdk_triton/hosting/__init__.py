"""The CDK constructs: `TritonArtifactStore` and its builders, models, fleets and endpoints with their variants."""

from __future__ import annotations

from cdk_triton.hosting.alarms import AlarmThresholds
from cdk_triton.hosting.codebuild_gpu_builder import CodeBuildGpuBuilder
from cdk_triton.hosting.data_capture import DataCapture
from cdk_triton.hosting.deployment import AllAtOnce, Canary, Capacity, DeploymentPolicy, Linear, Rolling
from cdk_triton.hosting.endpoint import TritonEndpoint
from cdk_triton.hosting.endpoint_variant import EndpointVariant
from cdk_triton.hosting.imported_endpoint import ImportedEndpoint
from cdk_triton.hosting.imported_store import ImportedArtifactStore
from cdk_triton.hosting.metrics import EndpointMetrics
from cdk_triton.hosting.metrics_config import MetricsConfig
from cdk_triton.hosting.model import ITritonModel, TritonModel
from cdk_triton.hosting.monitoring import EndpointMonitoring
from cdk_triton.hosting.multi_model import TritonMultiModel
from cdk_triton.hosting.processing_builder import SageMakerProcessingBuilder
from cdk_triton.hosting.scaling import ScalableInstanceCount
from cdk_triton.hosting.store import ITritonArtifactStore, TritonArtifactStore
from cdk_triton.hosting.variant import TritonVariant
from cdk_triton.hosting.vpc_endpoints import add_vpc_endpoints

__all__ = [
    "AlarmThresholds",
    "AllAtOnce",
    "Canary",
    "Capacity",
    "CodeBuildGpuBuilder",
    "DataCapture",
    "DeploymentPolicy",
    "EndpointMetrics",
    "EndpointMonitoring",
    "EndpointVariant",
    "ITritonArtifactStore",
    "ITritonModel",
    "ImportedArtifactStore",
    "ImportedEndpoint",
    "Linear",
    "MetricsConfig",
    "Rolling",
    "SageMakerProcessingBuilder",
    "ScalableInstanceCount",
    "TritonArtifactStore",
    "TritonEndpoint",
    "TritonModel",
    "TritonMultiModel",
    "TritonVariant",
    "add_vpc_endpoints",
]
