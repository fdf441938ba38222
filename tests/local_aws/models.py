"""A double of a model: as small as `ITritonModel` may be, so that a template is all that has to be deployed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton import ServingPlatform

NOTHING: Mapping[str, str] = MappingProxyType({})


class Model(cdk.Resource):
    """A SageMaker Model without an archive; a fleet where it has target models."""

    size = 0

    def __init__(
        self,
        scope: cdk.Stack,
        name: str,
        *,
        target_models: Mapping[str, str] = NOTHING,
        environment: Mapping[str, str] = NOTHING,
        instance_type: str = "ml.g5.12xlarge",
    ) -> None:
        super().__init__(scope, name)
        self.platform = ServingPlatform(release="25.09", instance_type=instance_type)
        self.target_models = target_models
        self.is_multi_model = bool(target_models)
        self.role: iam.IRole = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        self._model = sagemaker.CfnModel(
            self,
            "Resource",
            execution_role_arn=self.role.role_arn,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image="example.com/triton:25.09",
                mode="MultiModel" if self.is_multi_model else "SingleModel",
                model_data_url="s3://models/fleet/" if self.is_multi_model else "s3://models/model.tar.gz",
                environment=dict(environment) or None,
            ),
        )

    @property
    def model_name(self) -> str:
        return self._model.attr_model_name
