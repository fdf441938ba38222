"""The engine itself: an operation ends, whatever happens in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from cdk_triton_local.cloudformation.engine import StackStateError, TemplateEngine
from cdk_triton_local.cloudformation.resource_types import Context, PhysicalResource, find
from cdk_triton_local.cloudformation.stacks import Stack
from cdk_triton_local.cloudformation.template import parse_template

if TYPE_CHECKING:
    from golden_messages import Messages


class Crashing(Mapping[str, Any]):
    """Attributes whose look-up crashes, as a fault in a resource type would."""

    def __contains__(self, name: object) -> bool:
        raise RuntimeError(f"no {name}")

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


TOPIC = type(find("AWS::SNS::Topic"))
TEMPLATE = {
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}},
    "Outputs": {"Name": {"Value": {"Fn::GetAtt": ["Topic", "TopicName"]}}},
}


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def engine(log: list[str]) -> TemplateEngine:
    return TemplateEngine(Mock(), region="us-east-1", account="123456789012", log=log.append)


@pytest.fixture
def attributes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mapping[str, Any]]:
    """What the next topic's attributes are."""
    following: dict[str, Mapping[str, Any]] = {"next": {"TopicName": "t"}}

    def make(self: Any, context: Context, *rest: Any) -> PhysicalResource:
        return PhysicalResource("arn", following["next"])

    monkeypatch.setattr(TOPIC, "create", make)
    monkeypatch.setattr(TOPIC, "update", make)
    monkeypatch.setattr(TOPIC, "delete", lambda *_: None)
    return following


def deploy(engine: TemplateEngine, stack: Stack, template: Mapping[str, Any]) -> None:
    target = engine.target(stack, parse_template(json.dumps(template)), {}, {})
    engine.deploy(stack, target, engine.plan(stack, target))
    engine.close()


def test_a_crash_in_a_creation_is_its_failure(
    messages: Messages, engine: TemplateEngine, attributes: dict[str, Mapping[str, Any]], log: list[str]
) -> None:
    attributes["next"] = Crashing()
    stack = engine.open("s")
    engine.add(stack)
    deploy(engine, stack, TEMPLATE)
    assert stack.status == "CREATE_FAILED"
    messages.record("CREATE_FAILED", stack.reason)
    assert stack.events[-1].status == "CREATE_FAILED"
    assert any("Traceback" in line and "no TopicName" in line for line in log)
    with pytest.raises(StackStateError, match="is in CREATE_FAILED state and can not be updated"):
        engine.check_idle(stack)
    engine.delete(stack)
    engine.close()
    assert stack.status == "DELETE_COMPLETE"


def test_a_crash_in_an_update_is_its_failure(engine: TemplateEngine, attributes: dict[str, Mapping[str, Any]]) -> None:
    stack = engine.open("s")
    engine.add(stack)
    deploy(engine, stack, TEMPLATE)
    assert stack.status == "CREATE_COMPLETE"
    attributes["next"] = Crashing()
    changed = {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "other"}}}
    deploy(engine, stack, {**TEMPLATE, "Resources": changed})
    assert stack.status == "UPDATE_FAILED"


def test_a_crash_in_a_deletion_is_its_failure(
    engine: TemplateEngine, attributes: dict[str, Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = engine.open("s")
    engine.add(stack)
    deploy(engine, stack, TEMPLATE)
    monkeypatch.setattr(
        "cdk_triton_local.cloudformation.deployment.creation_order", Mock(side_effect=RecursionError("too deep"))
    )
    engine.delete(stack)
    engine.close()
    assert (stack.status, stack.events[-1].status) == ("DELETE_FAILED", "DELETE_FAILED")
