"""Which services may assume the library's roles, and on whose behalf."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from cdk_triton import (
    CodeBuildGpuBuilder,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)

if TYPE_CHECKING:
    from tests.hosting.conftest import World

ROLE = "AWS::IAM::Role"
ACCOUNT = "111122223333"


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account=ACCOUNT, region="eu-west-1"))
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(), SageMakerProcessingBuilder()])
    common: dict[str, Any] = {"platform": world.platform, "store": store}
    model = TritonModel(stack, "Model", repository=world.repository(), **common)
    TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository_again("text")}, **common)
    TritonEndpoint(stack, "Endpoint", model=model).monitor()
    return stack


@pytest.mark.parametrize(
    ("role", "condition"),
    [
        ("ModelRole", {"ArnLike": {"aws:SourceArn": f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:*"}}),
        ("FleetRole", {"ArnLike": {"aws:SourceArn": f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:*"}}),
        (
            "StoreProcessingRole",
            {"ArnLike": {"aws:SourceArn": f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:processing-job/*"}},
        ),
        ("StoreCodeBuildRole", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
        ("EndpointMonitoringLogRetentionRole", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
        ("StoreIsCompleteRole", None),
        ("StoreWaiterRole", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
    ],
)
def test_a_service_acts_for_the_own_account_where_aws_says_that_it_tells(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], Any], role: str, condition: Any
) -> None:
    (found,) = (each for name, each in world.resources(stack, ROLE).items() if name.startswith(role))
    (statement,) = found["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    said = statement.get("Condition")
    if said is not None and "ArnLike" in said:
        said = {"ArnLike": {key: flattened(value) for key, value in said["ArnLike"].items()}}
    assert said == condition


def test_a_role_of_the_users_trusts_whom_they_say(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    role = iam.Role(stack, "Mine", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)
    (mine,) = (each for name, each in world.resources(stack, ROLE).items() if name.startswith("Mine"))
    assert "Condition" not in mine["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]
