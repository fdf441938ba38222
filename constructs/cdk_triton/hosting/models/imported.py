"""SageMaker Models that another stack, or another program, has made."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import jsii
from aws_cdk import Resource
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_triton._arguments import one, require_type
from cdk_triton.hosting._cdk.arguments import checked
from cdk_triton.hosting._cdk.literals import is_whole
from cdk_triton.hosting.sagemaker_names import check_sagemaker_name
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["ImportedModel"]

_BYTES: Final = one(lambda value: is_whole(value, 0), "use a number of bytes, such as 2 * 1024**3")


@jsii.implements(iam.IGrantable)
class ImportedModel(Resource):
    """A model to serve, which this app does not change: what `TritonModel.from_model_attributes` returns.

    Attributes:
        role: its execution role.
        platform: the release and instance type that it was made for.
        target_models: ensemble to `TargetModel`; empty for a single model.
        is_multi_model: whether callers name a target model.
        size: bytes that an instance loads when it starts.

    Args:
        scope: the stack or construct that uses it.
        id: the construct's id.
        model_name: its name.
        platform: the release and instance type that it was made for.
        role: its execution role.
        target_models: ensemble to `TargetModel`, for a multi-model endpoint; None: it is a single model.
        size: bytes of its files before compression, from which the timeouts of a variant follow.

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
        platform: ServingPlatform,
        role: iam.IRole,
        target_models: Mapping[str, str] | None = None,
        size: int = 0,
    ) -> None:
        check_sagemaker_name(model_name, "model_name")
        require_type("size", size, _BYTES)
        super().__init__(scope, id)
        self._name = model_name
        self.platform = platform
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
