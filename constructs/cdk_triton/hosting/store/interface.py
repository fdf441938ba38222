"""`ITritonArtifactStore`: the interface of a store for models, whether the app creates the store or shares it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.artifacts import S3File
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.hosting.store.builds.selection import BUILDING
from cdk_triton.hosting.store.imported import ImportedArtifactStore
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["ITritonArtifactStore"]


class ITritonArtifactStore(Protocol):
    """A store that models use: a `TritonArtifactStore` or a `SharedArtifactStore`."""

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket, laid out as in `cdk_triton.protocol.layout`."""

    @property
    def former_keys(self) -> Sequence[kms.IKey]:
        """The KMS keys that the store had before. Older archives may still be encrypted with them."""

    @property
    def service_token(self) -> str:
        """The provider of `Custom::TritonArtifacts`."""

    @property
    def handler_role(self) -> iam.IRole:
        """The role of the handler, which copies archives to the store and starts builds."""

    @property
    def promotes_from(self) -> ImportedArtifactStore | None:
        """The source store, from which archives are promoted; None if this store packs and builds archives."""

    def _require_assets_of(self, scope: Construct, bucket_name: str) -> None:
        """Reject a stack that publishes its assets to a bucket that the handler cannot read."""

    def _builder_for(
        self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File], work: str = BUILDING
    ) -> Builder:
        """Choose the builder for a platform, and grant what its builds need: the image, and the inputs from S3.

        `work` is what the construct needs the builder for, as messages say it.

        Raises:
            ConfigurationError: no builder of the store has the platform's GPU.
        """
