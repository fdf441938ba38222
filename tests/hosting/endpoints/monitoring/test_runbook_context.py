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

(CDK_JSON,) = of_kind("hosting/endpoints/monitoring/test_runbook_context.py")
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
    assert len(descriptions(stack)) == len(monitoring.alarms)


def test_the_dashboard_links_to_it(world: World, stack: cdk.Stack) -> None:
    endpoint(world, stack).monitor()

    dashboard = world.only(stack, "AWS::CloudWatch::Dashboard")
    assert f' Runbook: {WIKI}\\"' in json.dumps(dashboard["Properties"]["DashboardBody"])


def test_the_alarms_of_components_link_to_it(world: World, stack: cdk.Stack) -> None:
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    components = TritonComponents(stack, "Components", platform=platform, max_instance_count=3)
    components.add_component("Text", model=model, accelerators=2, memory=cdk.Size.gibibytes(8))
    components.monitor()

    assert descriptions(stack)
    assert all(f" Runbook: {WIKI}#" in text for text in descriptions(stack))


def test_the_alarm_of_a_publisher_links_to_it(world: World, stack: cdk.Stack) -> None:
    TritonMultiModel(stack, "Fleet", platform=world.platform).add_publisher()

    (text,) = descriptions(stack)
    assert text.endswith(f" Runbook: {WIKI}#publisherfailures")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(cdk.Fn.import_value("Wiki"), id="is a token"),
        pytest.param(f"HTTPS://{cdk.Aws.ACCOUNT_ID}.example.com", id="contains a token"),
    ],
)
def test_an_address_with_a_token_is_taken(world: World, address: str) -> None:
    stack = stack_with(world, address)
    endpoint(world, stack).monitor()

    assert all("Fn::Join" in text for text in descriptions(stack))


def test_the_argument_takes_precedence(world: World, stack: cdk.Stack) -> None:
    endpoint(world, stack).monitor(runbook_url="https://search.example.com/runbook")

    assert all(" Runbook: https://search.example.com/runbook#" in text for text in descriptions(stack))


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("", id="empty"),
        pytest.param(f"{WIKI}#alarms", id="with a fragment"),
        pytest.param("   ", id="blank"),
        pytest.param(f"{WIKI}\n", id="with a newline"),
        pytest.param(f"{WIKI}\0", id="with NUL"),
        pytest.param("https://", id="without a host"),
        pytest.param("not an address", id="other text"),
        pytest.param("wiki.example.com", id="without a scheme"),
        pytest.param("javascript:alert(1)", id="of another scheme"),
        pytest.param(5, id="not text"),
        pytest.param(cdk.Token.as_number({"Ref": "Page"}), id="token for a number"),
        pytest.param(cdk.Token.as_list({"Ref": "Pages"}), id="token for a list"),
        pytest.param(f"{WIKI}{'x' * 1000}", id="too long for a description"),
    ],
)
def test_a_context_value_that_is_not_the_address_of_a_page_is_rejected(
    messages: Messages, world: World, address: object
) -> None:
    monitored = endpoint(world, stack_with(world, address))
    with messages.raises(ConfigurationError):
        monitored.monitor()
