"""The CDK constructs, from the artifact store to an endpoint in production.

Five layers, each of which imports only those below it:

* `endpoints`: endpoints with their updates, scaling and monitoring;
* `models`: from a checked repository to a SageMaker Model, and publishing without a deployment;
* `store`: the bucket of the archives, its handlers and the builders;
* `access`: roles, keys, buckets, networks, images;
* `naming`: findings, acknowledgements, names, and helpers around the CDK.

The package is internal: users import from `cdk_triton`. The names below are imported at their first use, which saves
time: a plain endpoint needs neither alarms nor scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton.hosting.access.vpc_endpoints import add_vpc_endpoints
    from cdk_triton.hosting.endpoints.asynchronous.inference import AsyncInference
    from cdk_triton.hosting.endpoints.components.component import TritonComponent
    from cdk_triton.hosting.endpoints.components.components import TritonComponents
    from cdk_triton.hosting.endpoints.data_capture import DataCapture
    from cdk_triton.hosting.endpoints.endpoint import TritonEndpoint
    from cdk_triton.hosting.endpoints.imported import ImportedEndpoint, ImportedVariant
    from cdk_triton.hosting.endpoints.monitoring.alarms import AlarmThresholds
    from cdk_triton.hosting.endpoints.monitoring.endpoint_alarms import EndpointAlarms
    from cdk_triton.hosting.endpoints.monitoring.metrics_config import MetricsConfig
    from cdk_triton.hosting.endpoints.monitoring.monitoring import EndpointMonitoring
    from cdk_triton.hosting.endpoints.scaling.copy_count import ScalableCopyCount
    from cdk_triton.hosting.endpoints.scaling.instance_count import ScalableInstanceCount
    from cdk_triton.hosting.endpoints.updates.policies import (
        AllAtOnce,
        Canary,
        Capacity,
        DeploymentPolicy,
        Linear,
        Rolling,
    )
    from cdk_triton.hosting.endpoints.variants.endpoint_variant import EndpointVariant
    from cdk_triton.hosting.endpoints.variants.metrics import EndpointMetrics
    from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
    from cdk_triton.hosting.models.imported import ImportedModel
    from cdk_triton.hosting.models.interface import ITritonModel
    from cdk_triton.hosting.models.model import TritonModel
    from cdk_triton.hosting.models.multi_model import TritonMultiModel
    from cdk_triton.hosting.models.publishing.publisher import TritonPublisher
    from cdk_triton.hosting.naming.assertions import assert_no_errors
    from cdk_triton.hosting.naming.name_prefix import NamePrefix
    from cdk_triton.hosting.store.builds.codebuild_gpu_builder import CodeBuildGpuBuilder
    from cdk_triton.hosting.store.builds.processing_builder import SageMakerProcessingBuilder
    from cdk_triton.hosting.store.imported import ImportedArtifactStore
    from cdk_triton.hosting.store.interface import ITritonArtifactStore
    from cdk_triton.hosting.store.shared import SharedArtifactStore
    from cdk_triton.hosting.store.store import TritonArtifactStore

__all__ = [
    "AlarmThresholds",
    "AllAtOnce",
    "AsyncInference",
    "Canary",
    "Capacity",
    "CodeBuildGpuBuilder",
    "DataCapture",
    "DeploymentPolicy",
    "EndpointAlarms",
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

if not TYPE_CHECKING:  # which reports a misspelt name
    __getattr__, __dir__ = lazy_names(__name__)
