"""Application Auto Scaling targets, their scheduled actions and policies."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine, picked, tag_map
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceFailedError,
    ResourceType,
    register,
)

_TARGET = ("ResourceId", "ScalableDimension", "ServiceNamespace")


@register
class ScalableTarget(ResourceType):
    """AWS::ApplicationAutoScaling::ScalableTarget."""

    type_name = "AWS::ApplicationAutoScaling::ScalableTarget"
    note = (
        "The target is registered with its limits and scheduled actions, if the endpoint has the variant. The "
        "registration brings the variant's number of instances within the limits, and so does a scheduled action. A "
        "schedule with `L`, `W` or `#` does not run, and an action with a `StartTime` or `EndTime` is rejected."
    )
    modelled = frozenset(
        {*_TARGET, "MaxCapacity", "MinCapacity", "RoleARN", "ScheduledActions", "SuspendedState", "Tags"}
    )
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        self._register(context, properties, Tags=tag_map(context.tag_list(properties)))
        identifier = "|".join(properties[name] for name in _TARGET)
        physical = PhysicalResource(identifier, {"Id": identifier})
        try:
            self._replace_scheduled_actions(context, properties, {})
        except ClientError as error:
            raise ResourceFailedError(str(error), physical) from error  # it is registered until it is deleted
        return physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        self._register(context, properties)
        self._replace_scheduled_actions(context, properties, previous)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():  # its policies and scheduled actions go with it
            context.client("application-autoscaling").deregister_scalable_target(**picked(properties, *_TARGET))

    @staticmethod
    def _register(context: Context, properties: Properties, **more: Any) -> None:
        request = picked(properties, *_TARGET, "MaxCapacity", "MinCapacity", "RoleARN", "SuspendedState")
        context.client("application-autoscaling").register_scalable_target(**request, **more)

    @staticmethod
    def _replace_scheduled_actions(context: Context, properties: Properties, previous: Properties) -> None:
        """Delete the previous ones first, because an action keeps the members that a new request omits."""
        client, target = context.client("application-autoscaling"), picked(properties, *_TARGET)
        for action in previous.get("ScheduledActions", []):
            client.delete_scheduled_action(ScheduledActionName=action["ScheduledActionName"], **target)
        for action in properties.get("ScheduledActions", []):
            client.put_scheduled_action(**target, **action)


@register
class ScalingPolicy(ResourceType):
    """AWS::ApplicationAutoScaling::ScalingPolicy."""

    type_name = "AWS::ApplicationAutoScaling::ScalingPolicy"
    note = (
        "Target tracking and step policies change the number of instances or copies. A policy on a metric of SageMaker "
        "that is not published here is left out."
    )
    modelled = frozenset(
        {
            *_TARGET,
            "PolicyName",
            "PolicyType",
            "ScalingTargetId",
            "StepScalingPolicyConfiguration",
            "TargetTrackingScalingPolicyConfiguration",
        }
    )
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        request = {**self._target(properties), **properties}
        request.pop("ScalingTargetId", None)
        arn = context.client("application-autoscaling").put_scaling_policy(**request)["PolicyARN"]
        return PhysicalResource(arn, {"Arn": arn})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return self.create(context, properties)

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("application-autoscaling").delete_scaling_policy(
                PolicyName=properties["PolicyName"], **self._target(properties)
            )

    @staticmethod
    def _target(properties: Properties) -> dict[str, str]:
        if "ScalingTargetId" in properties:
            return dict(zip(_TARGET, properties["ScalingTargetId"].split("|"), strict=True))
        return picked(properties, *_TARGET)
