"""Sends a notification when an endpoint has gone back to its old configuration.

An update that is rolled back leaves the endpoint in service with its previous configuration. A program that waits for
the status InService takes that status for success (hashicorp/terraform-provider-aws#46663, #48997). The event of that
moment names the configuration. If it is not the configuration in the template, the update failed.

So the rule must contain the new configuration and the endpoint's name before the update begins, and the endpoint
depends on the rule. The status in the event shows other failures. Source of the events: "Events that Amazon SageMaker
AI sends to Amazon EventBridge" in SageMaker's developer guide.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import warn_about_topic
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["add_rollback_notification"]

EVENTS = ("SageMaker Endpoint State Change", "SageMaker Endpoint Deployment State Change")

FAILURES = ("FAILED", "ROLLING_BACK", "UPDATE_ROLLBACK_FAILED")
"""Statuses that show a rollback or a failure (EndpointStatus; events write them in capitals)."""


def add_rollback_notification(
    scope: Construct,
    endpoint: sagemaker.CfnEndpoint,
    config: sagemaker.CfnEndpointConfig,
    endpoint_name: str,
    topic: sns.ITopic | None,
) -> sns.ITopic:
    """Send one message when an update was rolled back or has failed, even if a topic is given several times.

    Args:
        scope: the endpoint.
        endpoint: the endpoint's L1 construct.
        config: the endpoint configuration in the template.
        endpoint_name: the endpoint's name, as literal text.
        topic: the topic. None: a new topic, encrypted with a KMS key that EventBridge can use.

    Raises:
        ConfigurationError: the topic was imported from another account or region, or is a FIFO topic, for which the
            targets of a rule have no setting (`Target` in the API reference of EventBridge).
    """
    from aws_cdk import aws_events_targets as targets  # slow to import, and rarely needed

    if topic is not None and getattr(topic, "fifo", False):  # an ITopic of the user may lack it
        raise ConfigurationError(
            f"the topic {path_of(topic)} is a FIFO topic, but a rule of EventBridge cannot set the MessageGroupId that "
            "the topic's messages need: use a standard topic, or omit topic and subscribe to the topic that "
            "add_rollback_notification returns"
        )
    own = scope.node.try_find_child("RollbackTopic")
    if topic is None and isinstance(own, sns.Topic):
        return own
    to = _own_topic(scope) if topic is None else topic
    found = scope.node.try_find_child("RollbackRule")
    rule = found if isinstance(found, events.Rule) else _rule(scope, endpoint, config, endpoint_name)
    if _notifies(rule, to):
        return to
    if topic is not None:
        warn_about_topic(scope, topic, "events.amazonaws.com")
    wanted, stack = config.attr_endpoint_config_name, stack_of(scope).stack_name
    name, status, current = (
        events.EventField.from_path(f"$.detail.{member}")
        for member in ("EndpointName", "EndpointStatus", "EndpointConfigName")
    )
    text = (
        f"The SageMaker endpoint {name} is {status} with the configuration {current}. The stack {stack} has set "
        f"{wanted}: an update of the endpoint was rolled back or has failed, or somebody else has updated it."
    )
    try:
        rule.add_target(targets.SnsTopic(to, message=events.RuleTargetInput.from_text(text)))
    except RuntimeError as error:  # jsii's, of anything that the CDK rejects
        if "cross-account or cross-region" not in str(error):
            raise
        arn = "" if has_token(to.topic_arn) else f" ({to.topic_arn})"
        raise ConfigurationError(
            f"the topic {path_of(to)}{arn} is in another account or region than {path_of(scope)}, whose "
            "EventBridge rule publishes only to topics of the same account and region: give such a topic, or omit "
            "topic and subscribe to the topic that add_rollback_notification returns"
        ) from None  # jsii's words and traceback would hide the sentence
    return to


def _rule(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, config: sagemaker.CfnEndpointConfig, endpoint_name: str
) -> events.Rule:
    rule = events.Rule(
        scope,
        "RollbackRule",
        description=f"cdk-triton: updates of {scope.node.path} that were rolled back"[:512],
        event_pattern=events.EventPattern(
            source=["aws.sagemaker"],
            detail_type=list(EVENTS),
            detail={
                "EndpointName": [endpoint_name],
                "$or": [
                    {"EndpointStatus": list(FAILURES)},
                    {
                        "EndpointStatus": ["IN_SERVICE"],
                        "EndpointConfigName": [{"anything-but": config.attr_endpoint_config_name}],
                    },
                ],
            },
        ),
    )
    endpoint.node.add_dependency(rule)
    return rule


def _notifies(rule: events.Rule, topic: sns.ITopic) -> bool:
    resource, stack = rule.node.default_child, stack_of(rule)
    targets = stack.resolve(resource.targets) if isinstance(resource, events.CfnRule) else None
    return stack.resolve(topic.topic_arn) in [target["arn"] for target in targets or ()]


def _own_topic(scope: Construct) -> sns.ITopic:
    # EventBridge could not publish with the AWS managed key for SNS, whose policy cannot be changed.
    key = kms.Key(
        scope,
        "RollbackKey",
        description=f"cdk-triton: messages of {scope.node.path}",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.DESTROY,
    )
    return sns.Topic(scope, "RollbackTopic", master_key=key, enforce_ssl=True)
