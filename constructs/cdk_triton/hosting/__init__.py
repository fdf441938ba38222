"""The CDK constructs, from the artifact store to an endpoint in production.

A repository becomes a Model (`models`) by way of the store (`store`) and, with recipes, of a build (`builds`). An
endpoint serves it (`endpoints`, or in copies `components`), is scaled (`scaling`) and watched (`monitoring`). The
modules beside these packages are shared by several of them, and `_cdk` is plumbing. No module imports from a higher
layer; the table of the layers is `LAYERS` in `tests/architecture/test_hosting_layers.py`.

The names below are imported when they are first used: a plain endpoint takes no alarms and no scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton.hosting.assertions import assert_no_errors
    from cdk_triton.hosting.builds.codebuild_gpu_builder import CodeBuildGpuBuilder
    from cdk_triton.hosting.builds.processing_builder import SageMakerProcessingBuilder
    from cdk_triton.hosting.components.component import TritonComponent
    from cdk_triton.hosting.components.components import TritonComponents
    from cdk_triton.hosting.endpoint_variant import EndpointVariant
    from cdk_triton.hosting.endpoints.async_inference import AsyncInference
    from cdk_triton.hosting.endpoints.data_capture import DataCapture
    from cdk_triton.hosting.endpoints.deployment import AllAtOnce, Canary, Capacity, DeploymentPolicy, Linear, Rolling
    from cdk_triton.hosting.endpoints.endpoint import TritonEndpoint
    from cdk_triton.hosting.endpoints.imported import ImportedEndpoint, ImportedVariant
    from cdk_triton.hosting.metrics import EndpointMetrics
    from cdk_triton.hosting.models.imported import ImportedModel
    from cdk_triton.hosting.models.model import ITritonModel, TritonModel
    from cdk_triton.hosting.models.multi_model import TritonMultiModel
    from cdk_triton.hosting.monitoring.alarms import AlarmThresholds
    from cdk_triton.hosting.monitoring.metrics_config import MetricsConfig
    from cdk_triton.hosting.monitoring.monitoring import EndpointMonitoring
    from cdk_triton.hosting.name_prefix import NamePrefix
    from cdk_triton.hosting.publishing.publisher import TritonPublisher
    from cdk_triton.hosting.scaling.copy_count import ScalableCopyCount
    from cdk_triton.hosting.scaling.instance_count import ScalableInstanceCount
    from cdk_triton.hosting.store.imported import ImportedArtifactStore
    from cdk_triton.hosting.store.interface import ITritonArtifactStore
    from cdk_triton.hosting.store.shared import SharedArtifactStore
    from cdk_triton.hosting.store.store import TritonArtifactStore
    from cdk_triton.hosting.variant import TritonVariant
    from cdk_triton.hosting.vpc_endpoints import add_vpc_endpoints

__all__ = [
    "AlarmThresholds",
    "AllAtOnce",
    "AsyncInference",
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
    "ImportedModel",
    "ImportedVariant",
    "Linear",
    "MetricsConfig",
    "NamePrefix",
    "Rolling",
    "SageMakerProcessingBuilder",
    "ScalableCopyCount",
    "ScalableInstanceCount",
    "SharedArtifactStore",
    "TritonArtifactStore",
    "TritonComponent",
    "TritonComponents",
    "TritonEndpoint",
    "TritonModel",
    "TritonMultiModel",
    "TritonPublisher",
    "TritonVariant",
    "add_vpc_endpoints",
    "assert_no_errors",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
