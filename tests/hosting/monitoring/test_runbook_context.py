"""The context value `cdk-triton:runbookUrl`, the address of the runbook for every alarm of an app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from tests.docs.blocks import of_kind

from cdk_triton import ServingPlatform, TritonComponents, TritonEndpoint, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

(CDK_JSON,) = of_kind("hosting/monitoring/test_runbook_context.py")
((KEY, WIKI),) = json.loads(CDK_JSON.text)["context"].items()


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return stack_with(world, WIKI)


def stack_with(world: World, address: object) -> cdk.Stack:
    app = world.app()
    app.node.set_context(KEY, address)
    return cdk.Stack(app, "Stack")


def descriptions(stack: cdk.Stack) -> list[str]:
    """The descriptions of a stack's alarms."""
    found = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    return [alarm["Properties"]["AlarmDescription"] for alarm in found]


def endpoint(world: World, stack: cdk.Stack) -> TritonEndpoint:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    return TritonEndpoint(stack, "Endpoint", model=model)


def test_the_alarms_of_an_endpoint_link_to_it(world: World, stack: cdk.Stack) -> None:
    monitoring = endpoint(world, stack).monitor()

    assert all(f" Runbook: {WIKI}#" in text for text in descriptions(stack))
    assert len(descriptions(stack)) == len(monitoring.alarms["AllTraffic"])


def test_the_alarms_of_components_link_to_it(world: World, stack: cdk.Stack) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    components = TritonComponents(stack, "Components", platform=platform, max_instance_count=3)
    components.add_component("Text", model=model, accelerators=2, memory=cdk.Size.gibibytes(8))
    components.monitor()

    assert descriptions(stack)
    assert all(f" Runbook: {WIKI}#" in text for text in descriptions(stack))


def test_the_alarm_of_a_publisher_links_to_it(world: World, stack: cdk.Stack) -> None:
    TritonMultiModel(stack, "Fleet", ensembles={}, platform=world.platform).add_publisher()

    (text,) = descriptions(stack)
    assert text.endswith(f" Runbook: {WIKI}#publisherfailures")


def test_the_argument_takes_precedence(world: World, stack: cdk.Stack) -> None:
    endpoint(world, stack).monitor(runbook_url="https://search.example.com/runbook")

    assert all(" Runbook: https://search.example.com/runbook#" in text for text in descriptions(stack))


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("", id="empty"),
        pytest.param(f"{WIKI}#alarms", id="with a fragment"),
        pytest.param(5, id="not text"),
        pytest.param(f"{WIKI}{'x' * 1000}", id="too long for a description"),
    ],
)
def test_a_context_value_that_is_not_the_address_of_a_page_is_rejected(
    messages: Messages, world: World, address: object
) -> None:
    monitored = endpoint(world, stack_with(world, address))
    with messages.raises(ConfigurationError):
        monitored.monitor()
