"""SNS topics, SQS queues and EventBridge rules. Topics deliver to queues as in moto; rules never fire."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

import json
from typing import Any

from cdk_triton_local.cloudformation.resource_types._calls import document, missing_is_fine, picked, tag_map
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)


@register
class Topic(ResourceType):
    """AWS::SNS::Topic."""

    type_name = "AWS::SNS::Topic"
    note = "A topic to which a program can publish."
    modelled = frozenset({"DisplayName", "TopicName", "Tags"})
    recorded = frozenset({"KmsMasterKeyId"})
    attributes = frozenset({"TopicArn", "TopicName"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("TopicName") or context.generated_name(256)
        arn = context.client("sns").create_topic(
            Name=name, Attributes=picked(properties, "DisplayName"), Tags=context.tag_list(properties)
        )["TopicArn"]
        return PhysicalResource(arn, {"TopicArn": arn, "TopicName": name})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("sns").set_topic_attributes(
            TopicArn=physical.id, AttributeName="DisplayName", AttributeValue=properties.get("DisplayName", "")
        )
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("sns").delete_topic(TopicArn=physical.id)


@register
class TopicPolicy(ResourceType):
    """AWS::SNS::TopicPolicy."""

    type_name = "AWS::SNS::TopicPolicy"
    note = "The policy is stored with the topics, but not enforced."
    modelled = frozenset({"PolicyDocument", "Topics"})
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = context.generated_name(128)
        return self.update(context, PhysicalResource(name, {"Id": name}), properties, {})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        for topic in properties["Topics"]:
            context.client("sns").set_topic_attributes(
                TopicArn=topic, AttributeName="Policy", AttributeValue=document(properties["PolicyDocument"])
            )
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        """Nothing to do: the policy is deleted with the topic."""


@register
class Subscription(ResourceType):
    """AWS::SNS::Subscription."""

    type_name = "AWS::SNS::Subscription"
    note = "A subscription. Messages reach only SQS queues."
    modelled = frozenset({"Endpoint", "Protocol", "RawMessageDelivery", "TopicArn"})
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        raw = {"RawMessageDelivery": "true"} if properties.get("RawMessageDelivery") else {}
        arn = context.client("sns").subscribe(
            Attributes=raw, ReturnSubscriptionArn=True, **picked(properties, "Endpoint", "Protocol", "TopicArn")
        )["SubscriptionArn"]
        return PhysicalResource(arn, {"Arn": arn})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("sns").set_subscription_attributes(
            SubscriptionArn=physical.id,
            AttributeName="RawMessageDelivery",
            AttributeValue="true" if properties.get("RawMessageDelivery") else "false",
        )
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("sns").unsubscribe(SubscriptionArn=physical.id)


@register
class Queue(ResourceType):
    """AWS::SQS::Queue."""

    type_name = "AWS::SQS::Queue"
    note = "A queue."
    modelled = frozenset(
        {
            "DelaySeconds",
            "MaximumMessageSize",
            "MessageRetentionPeriod",
            "QueueName",
            "ReceiveMessageWaitTimeSeconds",
            "RedrivePolicy",
            "Tags",
            "VisibilityTimeout",
        }
    )
    recorded = frozenset({"KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "SqsManagedSseEnabled"})
    attributes = frozenset({"Arn", "QueueName", "QueueUrl"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("QueueName") or context.generated_name(80)
        url = context.client("sqs").create_queue(
            QueueName=name, Attributes=self._settings(properties), tags=tag_map(context.tag_list(properties))
        )["QueueUrl"]
        return PhysicalResource(url, {"Arn": context.arn("sqs", name), "QueueName": name, "QueueUrl": url})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("sqs").set_queue_attributes(QueueUrl=physical.id, Attributes=self._settings(properties))
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("sqs").delete_queue(QueueUrl=physical.id)

    def _settings(self, properties: Properties) -> dict[str, str]:
        settings = picked(properties, *sorted(self.modelled - {"QueueName", "Tags"}))
        return {name: json.dumps(value) if isinstance(value, dict) else str(value) for name, value in settings.items()}


@register
class QueuePolicy(ResourceType):
    """AWS::SQS::QueuePolicy."""

    type_name = "AWS::SQS::QueuePolicy"
    note = "The policy is stored with the queues, but not enforced."
    modelled = frozenset({"PolicyDocument", "Queues"})
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = context.generated_name(128)
        return self.update(context, PhysicalResource(name, {"Id": name}), properties, {})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        for queue in properties["Queues"]:
            context.client("sqs").set_queue_attributes(
                QueueUrl=queue, Attributes={"Policy": document(properties["PolicyDocument"])}
            )
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        for queue in properties["Queues"]:
            with missing_is_fine():
                context.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": ""})


@register
class Rule(ResourceType):
    """AWS::Events::Rule."""

    type_name = "AWS::Events::Rule"
    note = (
        "A rule on the default event bus. SNS topics among its targets get the events of endpoints; there are no other "
        "events, and schedules do not run."
    )
    modelled = frozenset({"Description", "EventPattern", "Name", "ScheduleExpression", "State", "Tags", "Targets"})
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("Name") or context.generated_name(64)
        return self._put(context, name, properties, {})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return self._put(context, physical.id, properties, previous)

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            self._drop_targets(context, physical.id, {target["Id"] for target in properties.get("Targets", [])})
            context.client("events").delete_rule(Name=physical.id)

    def _put(self, context: Context, name: str, properties: Properties, previous: Properties) -> PhysicalResource:
        events: Any = context.client("events")
        request = picked(properties, "Description", "ScheduleExpression", "State")
        if "EventPattern" in properties:
            request["EventPattern"] = document(properties["EventPattern"])
        arn = events.put_rule(Name=name, **request)["RuleArn"]
        targets = properties.get("Targets", [])
        kept = {target["Id"] for target in targets}
        self._drop_targets(context, name, {target["Id"] for target in previous.get("Targets", [])} - kept)
        if targets:
            events.put_targets(Rule=name, Targets=targets)
        return PhysicalResource(name, {"Arn": arn})

    @staticmethod
    def _drop_targets(context: Context, name: str, targets: set[str]) -> None:
        if targets:
            context.client("events").remove_targets(Rule=name, Ids=sorted(targets))
