"""The table of what is modelled agrees with the code and with CloudFormation's own schemas."""

from __future__ import annotations

import pytest

from cdk_triton_local.cloudformation.api import OPERATIONS
from cdk_triton_local.cloudformation.resource_types import find, is_custom, registered
from cdk_triton_local.cloudformation.schema import resource_schema
from cdk_triton_local.wire.query_api import service_model

TYPES = registered()


def test_every_modelled_name_exists_in_cloudformation() -> None:
    for name, resource_type in TYPES.items():
        schema = resource_schema(name)
        assert resource_type.modelled | resource_type.recorded <= schema.properties, name
        assert not resource_type.modelled & resource_type.recorded, name
        assert is_custom(name) or resource_type.attributes <= schema.attributes, name
        assert resource_type.note.endswith("."), f"{name}: a sentence says what is behind it"


def test_every_operation_is_one_of_cloudformations() -> None:
    assert set(OPERATIONS) <= set(service_model().operation_names)


@pytest.mark.parametrize(
    ("type_name", "changed", "replacing"),
    [
        # From the template reference: "Update requires: Replacement" of each property.
        ("AWS::SageMaker::Model", {"PrimaryContainer"}, {"PrimaryContainer"}),
        ("AWS::SageMaker::EndpointConfig", {"ProductionVariants", "Tags"}, {"ProductionVariants"}),
        ("AWS::SageMaker::Endpoint", {"EndpointConfigName"}, set()),
        ("AWS::SageMaker::Endpoint", {"EndpointName"}, {"EndpointName"}),
        ("AWS::IAM::Role", {"Policies", "RoleName"}, {"RoleName"}),
        ("AWS::S3::Bucket", {"BucketName"}, {"BucketName"}),
        ("AWS::Lambda::Function", {"Code", "Handler"}, set()),
        ("AWS::ApplicationAutoScaling::ScalableTarget", {"MaxCapacity"}, set()),
        ("Custom::Anything", {"Property"}, set()),
    ],
)
def test_replacement_is_what_the_template_reference_says(
    type_name: str, changed: set[str], replacing: set[str]
) -> None:
    assert find(type_name).replacing(changed) == replacing
