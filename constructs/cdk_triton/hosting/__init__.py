"""The CDK constructs: `TritonArtifactStore`, `TritonModel`, `TritonMultiModel`, `TritonEndpoint`, `TritonVariant`."""

from __future__ import annotations

from cdk_triton.hosting.endpoint import TritonEndpoint, TritonVariant
from cdk_triton.hosting.model import ITritonModel, TritonModel
from cdk_triton.hosting.multi_model import TritonMultiModel
from cdk_triton.hosting.store import ITritonArtifactStore, TritonArtifactStore

__all__ = [
    "ITritonArtifactStore",
    "ITritonModel",
    "TritonArtifactStore",
    "TritonEndpoint",
    "TritonModel",
    "TritonMultiModel",
    "TritonVariant",
]
