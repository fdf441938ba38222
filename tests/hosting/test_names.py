"""Names: CloudFormation makes them up, so that what has to be replaced can be, and two stacks never want the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk.assertions import Template
from tests.security.everything import add_everything

if TYPE_CHECKING:
    from tests.hosting.conftest import World

NO_NAME_OF_A_RESOURCE = {"MetricName", "EndpointConfigName"}
"""Properties that say which metric is watched and which configuration is used."""


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
    }


def test_what_cloudformation_wants_named_is_named_by_its_place(world: World) -> None:
    """So that two endpoints, of one stack or of two, have policies of different names."""
    _, serving = add_everything(world, world.app())

    policies = world.resources(serving, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    names = [policy["Properties"]["PolicyName"] for policy in policies]
    assert len(names) == len(set(names)) == 2
    assert all(name.startswith(("ServingSingle", "ServingMulti")) for name in names)
