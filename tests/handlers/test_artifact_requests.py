"""What CloudFormation sends, and what it gets back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import artifacts
from artifacts.failure import ArtifactError, printable

if TYPE_CHECKING:
    from tests.handlers.conftest import World

    from golden_messages import Messages


@pytest.mark.slow
def test_the_physical_id_is_the_plans_hash(world: World) -> None:
    event = world.publish(world.ensemble("text"))

    accepted = artifacts.on_event(event, None)

    assert accepted["PhysicalResourceId"] == event["ResourceProperties"]["PlanSha256"]
    assert "Data" not in accepted


@pytest.mark.slow
@pytest.mark.parametrize("physical_id", ["0" * 64, "stack-TheFleet-1ABCDEF", "AWSCDK::CustomResourceProviderFramework"])
@pytest.mark.parametrize("properties", [None, {}, {"Key": "of an older version"}])
def test_a_delete_succeeds_whatever_it_carries_and_touches_nothing(
    world: World, physical_id: str, properties: dict[str, Any] | None
) -> None:
    text = world.ensemble("text")
    world.poll(world.publish(text, fleet=True))
    event = {"RequestType": "Delete", "PhysicalResourceId": physical_id, "ResourceProperties": properties}

    with world.counted() as calls:
        assert artifacts.on_event(event, None) == {"PhysicalResourceId": physical_id}
        assert world.poll(event)

    assert calls == []
    world.assert_served(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"PlanSha256": "abc"},
        {"PlanKey": ""},
        {"PlanBucket": None},
    ],
    ids=["hash", "key", "bucket"],
)
def test_a_malformed_request_is_rejected_at_once(messages: Messages, world: World, change: dict[str, Any]) -> None:
    event = world.publish(world.ensemble("text"))
    event["ResourceProperties"].update(change)

    with messages.raises(ArtifactError):
        artifacts.on_event(event, None)


@pytest.mark.slow
def test_a_changed_plan_is_rejected(messages: Messages, world: World) -> None:
    event = world.publish(world.ensemble("text"))
    key = event["ResourceProperties"]["PlanKey"]
    world.s3.put_object(Bucket="the-assets", Key=key, Body=b"{}")

    with messages.raises(ArtifactError):
        world.poll(event)

    assert world.stored_keys() == set()


@pytest.mark.slow
@pytest.mark.parametrize("schema", [1, 3], ids=["older", "newer"])
def test_a_plan_of_another_version_says_what_to_deploy_first(messages: Messages, world: World, schema: int) -> None:
    event = world.publish_plan({"schema": schema, "commits": [], "fleet": None})

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        {"schema": 2, "commits": []},
        {"schema": 2, "commits": [{"a": 1}], "fleet": None},
        [],
        {"schema": 2, "commits": 1},
    ],
    ids=["no fleet", "another commit", "a list", "a number"],
)
def test_a_plan_that_nobody_of_us_writes_is_a_sentence(messages: Messages, world: World, plan: Any) -> None:
    event = world.publish_plan(plan)

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_nothing_secret_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="artifacts"):
        world.poll(world.publish(world.ensemble("text"), fleet=True))

    assert "s3://the-store/artifacts/text/" in caplog.text
    assert "s3cr3t" not in caplog.text
    assert "ResponseURL" not in caplog.text


@pytest.mark.slow
def test_a_failure_names_the_log_group(messages: Messages, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", "Store-Logs-123")
    event = world.publish_plan({"schema": 2})

    with messages.raises(ArtifactError):
        world.poll(event)


@pytest.mark.slow
def test_a_long_failure_is_logged_as_a_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_GROUP_NAME", "Store-Logs-123")
    event = world.publish_plan({})
    event["ResourceProperties"]["PlanKey"] = "x" * 1000

    with pytest.raises(ArtifactError, match=r"\.\.\. \[full text in the log group Store-Logs-123\]$"):
        world.poll(event)

    assert "x" * 1000 in caplog.text


@given(st.text())
@example("x" * 5000)
@example("x ü\n" * 5000)
def test_a_reason_is_printable_ascii_of_at_most_a_thousand_characters(text: str) -> None:
    reason = printable(text)

    assert reason.isascii()
    assert reason == "" or reason.isprintable()
    assert len(reason) <= 1000


def test_typography_of_a_reason_becomes_plain() -> None:
    assert printable("trtexec “bert” isn’t ‘there’ … ü") == "trtexec \"bert\" isn't 'there' ... ?"  # noqa: RUF001
