"""Names: CloudFormation makes them up, so that what has to be replaced can be, and two stacks never want the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from tests.security.everything import add_everything

from cdk_triton import EndpointMetrics, TritonArtifactStore, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

NO_NAME_OF_A_RESOURCE = {"MetricName", "EndpointConfigName", "ServiceName"}
"""Properties that say which metric is watched, which configuration is used, and which service a VPC endpoint is for."""


def test_only_what_the_user_names_and_what_cloudformation_wants_named_has_a_name(world: World) -> None:
    resources = [
        resource
        for stack in add_everything(world, world.app())
        for resource in Template.from_stack(stack).to_json()["Resources"].values()
        if not resource["Type"].startswith("Custom::")  # it is a request, whose properties name other resources
    ]
    named = {
        (resource["Type"], name)
        for resource in resources
        for name in resource["Properties"]
        if name.endswith("Name") and name not in NO_NAME_OF_A_RESOURCE
    }

    assert {"AWS::SageMaker::Model", "AWS::SageMaker::EndpointConfig"} <= {each["Type"] for each in resources}
    assert named == {
        ("AWS::SageMaker::Endpoint", "EndpointName"),  # endpoint_name=
        ("AWS::SSM::Parameter", "Name"),  # ssm_parameter_path=
        ("AWS::ApplicationAutoScaling::ScalingPolicy", "PolicyName"),
        ("AWS::Logs::LogGroup", "LogGroupName"),  # of a publisher, with a prefix that the account's log policy needs
        ("AWS::SageMaker::InferenceComponent", "InferenceComponentName"),  # without capitals; has the stack's id
        ("AWS::SageMaker::InferenceComponent", "EndpointName"),  # the endpoint that it belongs to
        ("AWS::SageMaker::InferenceComponent", "VariantName"),
    }


def test_what_cloudformation_wants_named_is_named_by_its_place(world: World) -> None:
    """So that two endpoints, of one stack or of two, have policies of different names."""
    _, serving = add_everything(world, world.app())

    policies = world.resources(serving, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    names = [policy["Properties"]["PolicyName"] for policy in policies]
    assert len(names) == len(set(names)) == 7  # components and asynchronous endpoints that scale to zero have two
    places = ("ServingSingle", "ServingMulti", "ServingPools", "ServingQueued", "ServingComponents")
    assert all(name.startswith(places) for name in names)


@pytest.mark.parametrize(
    "name",
    ["x" * 55 + cdk.Aws.REGION, "x" * 52 + cdk.Aws.ACCOUNT_ID, f"my_{cdk.Aws.REGION}", f"-{cdk.Aws.STACK_NAME}"],
    ids=["long with a region", "long with an account", "a line", "a dash before"],
)
def test_what_is_known_of_a_name_with_tokens_is_checked(
    messages: Messages, world: World, stack: cdk.Stack, name: str
) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=name)


def test_other_names_with_tokens_are_checked_too(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    with messages.raises(ConfigurationError):
        endpoint.monitor(dashboard_name="x" * 250 + cdk.Aws.REGION)
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", bucket_name="x" * 60 + cdk.Aws.REGION)


@pytest.mark.parametrize(
    "name",
    ["x" * 54 + cdk.Aws.REGION, f"search-{cdk.Aws.STACK_NAME}-{cdk.Aws.REGION}", cdk.Aws.STACK_NAME],
    ids=["as long as can be", "parts", "one token"],
)
def test_a_name_with_tokens_that_may_fit_is_passed_on(world: World, stack: cdk.Stack, name: str) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model, endpoint_name=name).monitor(dashboard_name=name)
    EndpointMetrics(endpoint_name=name)
    TritonArtifactStore(stack, "Store", bucket_name=name)
