"""SageMaker Models that another stack, or another program, has created."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import jsii
from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton._arguments import one, require_type
from cdk_triton._checked import checked
from cdk_triton.hosting.naming.literals import is_whole
from cdk_triton.hosting.naming.service_names import check_sagemaker_name
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.sagemaker.platform import platform_of

__all__ = ["ImportedModel"]

_BYTES: Final = one(lambda value: is_whole(value, 0, math.inf), "use a number of bytes, such as 2 * 1024**3")


@jsii.implements(iam.IGrantable)
class ImportedModel(Resource):
    """A SageMaker Model that this app serves but does not change, from `TritonModel.from_model_attributes`.

    Attributes:
        role: the model's execution role.
        platform: the release and instance type for which the model was created.
        target_models: the name of each ensemble → its `TargetModel`; empty for a single model.
        is_multi_model: whether callers name a target model.
        size: the number of bytes that an instance loads when it starts.

    Args:
        scope: the stack or construct that uses the model.
        id: the construct's id.
        model_name: the name of the SageMaker Model.
        platform: the release and instance type for which the model was created.
        role: the model's execution role.
        target_models: the name of each ensemble → its `TargetModel`, for a multi-model endpoint. None: a single model.
        size: the size of the model's files before compression, in bytes. It determines a variant's default timeouts.

    Raises:
        ConfigurationError: SageMaker does not accept the name, or the size is not a number of bytes.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_name: str,
        platform: ServingPlatform | str,
        role: iam.IRole,
        target_models: Mapping[str, str] | None = None,
        size: int = 0,
    ) -> None:
        check_sagemaker_name(model_name, "model_name")
        require_type("size", size, _BYTES)
        found = platform_of(platform)  # before the id is taken
        super().__init__(scope, id)
        self._name = model_name
        self.platform = found
        self.role = role
        self.target_models: Mapping[str, str] = MappingProxyType(dict(target_models or {}))
        self.is_multi_model = target_models is not None
        self.size = size

    @property
    def model_name(self) -> str:
        """The name of the SageMaker Model."""
        return self._name

    @property
    @jsii.member(jsii_name="grantPrincipal")
    def grant_principal(self) -> iam.IPrincipal:
        """The execution role, for grants such as `bucket.grant_read(model)`."""
        return self.role.grant_principal
