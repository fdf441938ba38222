"""A rollback that a deployment takes for a success is told to somebody."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from cdk_triton import TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

RULE, TOPIC = "AWS::Events::Rule", "AWS::SNS::Topic"


@pytest.fixture(name="endpoint")
def _endpoint(world: World, stack: cdk.Stack) -> TritonEndpoint:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    return TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="Search")


def pattern(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, RULE)["Properties"]["EventPattern"]
    return found


def test_the_rule_is_for_this_endpoint_in_service_with_another_configuration(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint
) -> None:
    endpoint.add_rollback_notification()

    (config,) = world.resources(stack, "AWS::SageMaker::EndpointConfig")
    assert pattern(world, stack) == {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Endpoint State Change", "SageMaker Endpoint Deployment State Change"],
        "detail": {
            "EndpointName": ["Search"],
            "$or": [
                {"EndpointStatus": ["FAILED", "ROLLING_BACK", "UPDATE_ROLLBACK_FAILED"]},
                {
                    "EndpointStatus": ["IN_SERVICE"],
                    "EndpointConfigName": [{"anything-but": {"Fn::GetAtt": [config, "EndpointConfigName"]}}],
                },
            ],
        },
    }


def test_the_rule_knows_the_new_configuration_before_the_update_begins(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint
) -> None:
    endpoint.add_rollback_notification()

    (rule,) = world.resources(stack, RULE)
    assert rule in world.only(stack, "AWS::SageMaker::Endpoint")["DependsOn"]


def test_the_message_says_what_is_and_what_was_wanted(
    messages: Messages, world: World, stack: cdk.Stack, endpoint: TritonEndpoint, flattened: Callable[[Any], str]
) -> None:
    endpoint.add_rollback_notification()

    (target,) = world.only(stack, RULE)["Properties"]["Targets"]
    transformer = target["InputTransformer"]
    assert set(transformer["InputPathsMap"].values()) == {
        "$.detail.EndpointName",
        "$.detail.EndpointStatus",
        "$.detail.EndpointConfigName",
    }
    said = flattened(transformer["InputTemplate"])
    messages.record("notice of a rollback", said)
    (config,) = world.resources(stack, "AWS::SageMaker::EndpointConfig")
    assert f"<{config}.EndpointConfigName>" in said


def test_the_topic_of_its_own_is_encrypted_and_eventbridge_may_publish(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint
) -> None:
    topic = endpoint.add_rollback_notification()

    assert isinstance(topic, sns.Topic)
    (key,) = world.resources(stack, "AWS::KMS::Key")
    assert world.only(stack, TOPIC)["Properties"]["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    service = {"Service": "events.amazonaws.com"}
    statements = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
    (allowed,) = (each["Action"] for each in statements if each["Principal"] == service)
    assert allowed == ["kms:Decrypt", "kms:GenerateDataKey*"]
    statements = world.only(stack, "AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Action"] for each in statements if each["Principal"] == service] == ["sns:Publish"]
    assert any(each["Effect"] == "Deny" for each in statements)  # whatever comes without TLS


def test_a_users_topic_gets_the_message_and_its_key_is_opened(
    world: World, stack: cdk.Stack, endpoint: TritonEndpoint
) -> None:
    key = kms.Key(stack, "Key")
    topic = sns.Topic(stack, "Topic", master_key=key)

    assert endpoint.add_rollback_notification(topic) is topic
    assert len(world.resources(stack, TOPIC)) == 1
    statements = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
    assert {"Service": "events.amazonaws.com"} in [each["Principal"] for each in statements]


def test_several_topics_share_the_rule(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    for name in ("One", "Two"):
        endpoint.add_rollback_notification(
            sns.Topic.from_topic_arn(stack, name, f"arn:aws:sns:us-east-1:111122223333:{name}")
        )

    assert len(world.only(stack, RULE)["Properties"]["Targets"]) == 2


def test_a_topic_that_is_given_twice_gets_one_message(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    topic = sns.Topic(stack, "Topic")
    for _ in range(2):
        assert endpoint.add_rollback_notification(topic) is topic

    assert len(world.only(stack, RULE)["Properties"]["Targets"]) == 1


def test_its_own_topic_is_made_once(world: World, stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    assert endpoint.add_rollback_notification() is endpoint.add_rollback_notification()
    assert len(world.only(stack, RULE)["Properties"]["Targets"]) == 1


def test_a_generated_name_is_rejected(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    with messages.raises(ConfigurationError):
        endpoint.add_rollback_notification()
    assert world.resources(stack, TOPIC) == {}
