"""CloudWatch alarms, dashboards, log groups, and the schedules that set the retention of log groups."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine, picked, tag_map
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)
from cdk_triton_local.services import check_alarm


@register
class Alarm(ResourceType):
    """AWS::CloudWatch::Alarm."""

    type_name = "AWS::CloudWatch::Alarm"
    note = (
        "The alarm is evaluated every minute, or every 10 seconds if its period is shorter, and its actions on SNS "
        "topics and scaling policies are carried out; those of SetAlarmState within 10 seconds. The expressions of "
        "this library are computed; others are rejected."
    )
    modelled = frozenset(
        {
            "ActionsEnabled",
            "AlarmActions",
            "AlarmDescription",
            "AlarmName",
            "ComparisonOperator",
            "DatapointsToAlarm",
            "Dimensions",
            "EvaluationPeriods",
            "ExtendedStatistic",
            "InsufficientDataActions",
            "MetricName",
            "Metrics",
            "Namespace",
            "OKActions",
            "Period",
            "Statistic",
            "Tags",
            "Threshold",
            "TreatMissingData",
        }
    )
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("AlarmName") or context.generated_name(255)
        request = {**properties, "AlarmName": name, "Tags": context.tag_list(properties)}
        check_alarm(request)
        context.client("cloudwatch").put_metric_alarm(**request)
        return PhysicalResource(name, {"Arn": context.arn("cloudwatch", f"alarm:{name}")})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        check_alarm(properties)
        context.client("cloudwatch").put_metric_alarm(**{**properties, "AlarmName": physical.id})
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("cloudwatch").delete_alarms(AlarmNames=[physical.id])


@register
class Dashboard(ResourceType):
    """AWS::CloudWatch::Dashboard."""

    type_name = "AWS::CloudWatch::Dashboard"
    note = "The dashboard is stored and returned, but not drawn."
    modelled = frozenset({"DashboardBody", "DashboardName"})
    recorded = frozenset({"Tags"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("DashboardName") or context.generated_name(255)
        context.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=properties["DashboardBody"])
        return PhysicalResource(name)

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return self.create(context, {**properties, "DashboardName": physical.id})

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("cloudwatch").delete_dashboards(DashboardNames=[physical.id])


@register
class LogGroup(ResourceType):
    """AWS::Logs::LogGroup."""

    type_name = "AWS::Logs::LogGroup"
    note = "A log group. Functions write to it; endpoints write to files in the state directory."
    modelled = frozenset({"LogGroupName", "RetentionInDays", "Tags"})
    recorded = frozenset({"DeletionProtectionEnabled", "KmsKeyId", "LogGroupClass"})
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("LogGroupName") or context.generated_name(512)
        context.client("logs").create_log_group(logGroupName=name, tags=tag_map(context.tag_list(properties)))
        physical = PhysicalResource(name, {"Arn": context.arn("logs", f"log-group:{name}:*")})
        return self.update(context, physical, properties, {})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        logs = context.client("logs")
        for days in picked(properties, "RetentionInDays").values():
            logs.put_retention_policy(logGroupName=physical.id, retentionInDays=days)
        if "RetentionInDays" in previous and "RetentionInDays" not in properties:
            logs.delete_retention_policy(logGroupName=physical.id)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("logs").delete_log_group(logGroupName=physical.id)


@register
class Schedule(ResourceType):
    """AWS::Scheduler::Schedule."""

    type_name = "AWS::Scheduler::Schedule"
    note = "The schedule is stored and returned, but never runs."
    modelled = frozenset(
        {
            "Description",
            "EndDate",
            "FlexibleTimeWindow",
            "GroupName",
            "Name",
            "ScheduleExpression",
            "ScheduleExpressionTimezone",
            "StartDate",
            "State",
            "Target",
        }
    )
    recorded = frozenset({"KmsKeyArn"})
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("Name") or context.generated_name(64)
        answer = context.client("scheduler").create_schedule(**{**properties, "Name": name})
        return PhysicalResource(name, {"Arn": answer["ScheduleArn"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        if properties.get("GroupName") != previous.get("GroupName"):
            self.delete(context, physical, previous)
            return self.create(context, {**properties, "Name": physical.id})
        context.client("scheduler").update_schedule(**{**properties, "Name": physical.id})
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("scheduler").delete_schedule(Name=physical.id, **picked(properties, "GroupName"))
