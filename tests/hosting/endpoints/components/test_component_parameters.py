"""The names of an endpoint with components in the Parameter Store, and who may read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM

from cdk_triton import TritonComponents, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

PARAMETER = "AWS::SSM::Parameter"
PATH = "/search/production"


@pytest.fixture(name="told")
def _told(stack: cdk.Stack) -> TritonComponents:
    return TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=2, ssm_parameter_path=PATH)


@pytest.fixture(name="caller")
def _caller(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())


def readable(world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> set[str]:
    """The parameters that the caller may read."""
    found = set()
    for statement in world.statements(stack, "Caller"):
        if statement["Action"] == "ssm:GetParameters":
            resources = statement["Resource"]
            for each in resources if isinstance(resources, list) else [resources]:
                found.add("/" + flattened(each).partition(":parameter/")[2])
    return found


def test_callers_find_the_endpoint_and_its_components(
    world: World, stack: cdk.Stack, told: TritonComponents, text: TritonModel
) -> None:
    component = told.add_component("Text", model=text, **COPY)

    found = [each["Properties"] for each in world.resources(stack, PARAMETER).values()]
    assert {each["Name"]: each["Value"] for each in found} == {
        f"{PATH}/endpoint-name": stack.resolve(told.endpoint_name),
        f"{PATH}/endpoint-arn": stack.resolve(told.endpoint_arn),
        f"{PATH}/components/Text": stack.resolve(component.component_name),  # and so after the component
    }


def test_without_a_path_there_are_none(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel, caller: iam.Role
) -> None:
    components.add_component("Text", model=text, **COPY)
    components.grant_invoke(caller)

    assert not world.resources(stack, PARAMETER)


def test_callers_of_all_components_read_all_parameters(
    world: World,
    stack: cdk.Stack,
    told: TritonComponents,
    text: TritonModel,
    caller: iam.Role,
    flattened: Callable[[Any], str],
) -> None:
    told.add_component("First", model=text, **COPY)
    told.grant_invoke(caller)
    told.add_component("Second", model=text, **COPY)

    assert readable(world, stack, flattened) >= {
        f"{PATH}/endpoint-name",
        f"{PATH}/endpoint-arn",
        f"{PATH}/async/input",  # TritonClient.from_parameters asks every endpoint for it
        f"{PATH}/components/First",
        f"{PATH}/components/Second",
    }


def test_callers_of_one_component_read_its_parameter(
    world: World,
    stack: cdk.Stack,
    told: TritonComponents,
    text: TritonModel,
    caller: iam.Role,
    flattened: Callable[[Any], str],
) -> None:
    first = told.add_component("First", model=text, **COPY)
    told.add_component("Second", model=text, **COPY)
    first.grant_invoke(caller)

    found = readable(world, stack, flattened)
    assert found >= {f"{PATH}/endpoint-name", f"{PATH}/components/First"}
    assert f"{PATH}/components/Second" not in found


def test_parameters_that_cannot_be_written_are_rejected(
    messages: Messages, stack: cdk.Stack, told: TritonComponents, text: TritonModel
) -> None:
    with messages.raises(ConfigurationError):
        TritonComponents(stack, "Bad", platform=PLATFORM, max_instance_count=2, ssm_parameter_path="search")
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=text, ssm_parameter_path=PATH)
    for id in ("Text search", "x" * 1000):
        with messages.raises(ConfigurationError):
            told.add_component(id, model=text, **COPY)

    told.add_component("Text", model=text, **COPY)  # nothing was left behind
