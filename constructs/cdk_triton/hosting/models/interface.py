"""`ITritonModel`: the interface of a model for an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from aws_cdk import aws_iam as iam
from constructs import Node

from cdk_triton.sagemaker import ServingPlatform

__all__ = ["ITritonModel"]


@runtime_checkable
class ITritonModel(Protocol):
    """A SageMaker Model that runs Triton, for a variant of an endpoint.

    An endpoint can also serve your own construct if it has these members.
    """

    @property
    def node(self) -> Node:
        """The construct's node. An endpoint is created after every construct below this node."""

    @property
    def model_name(self) -> str:
        """The name of the SageMaker Model, as a token."""

    @property
    def role(self) -> iam.IRole:
        """The execution role."""

    @property
    def platform(self) -> ServingPlatform:
        """The platform that serves the model. A variant gets its instance type and host AMI from this platform."""

    @property
    def target_models(self) -> Mapping[str, str]:
        """The name of each ensemble → its `TargetModel`; empty for a single model."""

    @property
    def is_multi_model(self) -> bool:
        """Whether callers name a target model. An instance loads a target model at the first request for it."""

    @property
    def size(self) -> int:
        """The size of what an instance loads when it starts, in bytes before compression, as far as known at synth.

        A `TritonMultiModel` has 0. For a file that a recipe builds, the size of the recipe's sources counts.
        """
