"""What the guide says that SageMaker's API has and CloudFormation does not: a new CDK may end it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from aws_cdk import aws_sagemaker as sagemaker
from botocore.loaders import Loader
from botocore.model import ServiceModel

COMPONENT = sagemaker.CfnInferenceComponent.InferenceComponentComputeResourceRequirementsProperty


@pytest.fixture(name="api", scope="module")
def _api() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "member", "l1", "argument"),
    [
        (
            "ProductionVariant",
            "AcceleratorPartitionLayouts",
            sagemaker.CfnEndpointConfig.ProductionVariantProperty,
            "accelerator_partition_layouts",
        ),
        (
            "InferenceComponentComputeResourceRequirements",
            "AcceleratorPartitionType",
            COMPONENT,
            "accelerator_partition_type",
        ),
        (
            "CreateEndpointConfigInput",
            "CrossRegionTrafficConfig",
            sagemaker.CfnEndpointConfig,
            "cross_region_traffic_config",
        ),
    ],
)
def test_a_member_of_the_api_is_not_a_property(
    api: ServiceModel, shape: str, member: str, l1: Any, argument: str
) -> None:
    assert member in api.shape_for(shape).members  # type: ignore[attr-defined]  # of structures
    assert argument not in inspect.signature(l1.__init__).parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "l1"), [("PutEndpointPolicy", "CfnEndpointPolicy"), ("CreateInferenceRouter", "CfnInferenceRouter")]
)
def test_an_operation_of_the_api_has_no_resource_type(api: ServiceModel, operation: str, l1: str) -> None:
    assert operation in api.operation_names
    assert not hasattr(sagemaker, l1)
