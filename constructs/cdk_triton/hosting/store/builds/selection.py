"""Chooses a store's builder for a platform."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import region_of
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.hosting.store.builds.codebuild_gpu_builder import CodeBuildGpuBuilder
from cdk_triton.hosting.store.builds.processing_builder import SageMakerProcessingBuilder
from cdk_triton.sagemaker import ServingPlatform, codebuild_gpu_regions

__all__ = ["BUILDER_IDS", "BUILDING", "REHEARSING", "BuilderChoice"]

BUILDING = "recipes to build"
REHEARSING = "a repository to rehearse"
"""What a construct needs a builder for, as messages say it."""

BUILDER_IDS = {"codebuild": "CodeBuild", "processing": "Processing"}
"""The construct id of each kind of builder below the store: a contract."""


class BuilderChoice:
    """The builders of a store, in order of preference.

    Args:
        store: the store's construct, whose region determines whether CodeBuild is among the defaults.
        builders: the builders. None: CodeBuild, if the region is known to have its GPUs, and Processing.

    Raises:
        ConfigurationError: two builders are of the same kind.
    """

    def __init__(self, store: Construct, builders: Sequence[Builder] | None) -> None:
        region = region_of(store)
        self._store = store
        self._region = None if has_token(region) else region
        self.builders = self._defaults() if builders is None else tuple(builders)
        kinds = [builder._kind for builder in self.builders]
        for builder in self.builders:
            if kinds.count(builder._kind) > 1:
                raise ConfigurationError(
                    f"{store.node.path} has two builders of the kind {type(builder).__name__}: keep one of them, or "
                    "give the other to another artifact store"
                )

    def builder_for(self, scope: Construct, platform: ServingPlatform, work: str = BUILDING) -> Builder:
        """The first builder that has the platform's GPU; messages name its work.

        Raises:
            ConfigurationError: no builder of the store has it.
        """
        builder = next((b for b in self.builders if b._unsupported_reason(platform, self._region) is None), None)
        if builder is None:
            raise ConfigurationError(self._why_none(scope, platform, work))
        return builder

    def _defaults(self) -> tuple[Builder, ...]:
        # In a region without CodeBuild's GPUs, not even the project can be created.
        if self._region in codebuild_gpu_regions():
            return CodeBuildGpuBuilder(), SageMakerProcessingBuilder()
        return (SageMakerProcessingBuilder(),)

    def _why_none(self, scope: Construct, platform: ServingPlatform, work: str) -> str:
        reasons = [f"{type(b).__name__}: {b._unsupported_reason(platform, self._region)}" for b in self.builders]
        kinds = {builder._kind for builder in self.builders}
        possible = sorted(
            (
                b
                for b in (SageMakerProcessingBuilder(), CodeBuildGpuBuilder())
                if not b._unsupported_reason(platform, self._region)
            ),
            key=lambda builder: builder._kind in kinds,
        )
        if possible:
            fix = f"give the store the builder {type(possible[0]).__name__}()"
        elif work == REHEARSING:
            fix = (
                "no builder of this library has this GPU. Remove the golden requests, or deploy with "
                "`-c cdk-triton:rehearsal=skip`. Or serve on another GPU"
            )
        else:
            fix = (
                "no builder of this library has this GPU. Build on a machine that has it, in the same image, and put "
                "the outputs into the repository instead of the recipes. Or serve on another GPU"
            )
        return (
            f"{scope.node.path} has {work} for {platform.instance_type} with its {platform.gpu}, but the "
            f"artifact store {self._store.node.path} has no builder for this GPU "
            f"({'; '.join(reasons) or 'builders is empty'}): {fix}"
        )
