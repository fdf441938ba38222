"""The page of keys has the statements for imported keys. The library adds the same ones to a key of the app."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from tests.docs.blocks import of_kind

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

POLICY, OF_TOPIC = (json.loads(block.text) for block in of_kind("hosting/access/keys/test_keys_page.py"))


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    """A stack in the account and the region of the page."""
    return cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))


def in_order(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement with its actions in alphabetical order, as the CDK writes some of them."""
    actions = statement["Action"]
    return statement | {"Action": sorted(actions) if isinstance(actions, list) else actions}


def key_statements(world: World, stack: cdk.Stack, flattened: Callable[[Any], str]) -> list[dict[str, Any]]:
    """The policy of the key of a stack, as it is in the account of the page."""
    policy = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]

    def resolved(value: Any) -> Any:
        match value:
            case {"Fn::Join": _} | {"Ref": _}:
                return flattened(value).replace("<AWS::Partition>", "aws").replace("<AWS::URLSuffix>", "amazonaws.com")
            case dict():
                return {name: resolved(each) for name, each in value.items()}
        return value

    return [resolved(statement) for statement in policy]


def test_the_policy_of_an_imported_key_is_that_of_a_key_of_the_app(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    store = TritonArtifactStore(stack, "Store", encryption_key=kms.Key(stack, "Key"))
    model = TritonMultiModel(stack, "Model", platform=world.platform, store=store)
    model.add_publisher()

    statements = key_statements(world, stack, flattened)
    assert [in_order(statement) for statement in POLICY] == [in_order(statement) for statement in statements]


def test_the_statement_of_an_imported_key_of_a_topic_is_that_of_a_key_of_the_app(
    world: World, stack: cdk.Stack, flattened: Callable[[Any], str]
) -> None:
    topic = sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key"))
    model = TritonMultiModel(stack, "Model", ensembles={"text": world.repository()}, platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search")
    endpoint.monitor(topic=topic)
    endpoint.add_rollback_notification(topic)

    of_alarms, of_rollbacks = key_statements(world, stack, flattened)[1:]
    assert of_alarms == OF_TOPIC
    without_condition = {name: value for name, value in OF_TOPIC.items() if name != "Condition"}
    assert of_rollbacks == without_condition | {"Principal": {"Service": "events.amazonaws.com"}}
