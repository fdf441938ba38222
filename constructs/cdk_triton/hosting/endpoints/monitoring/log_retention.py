"""How long the logs of an endpoint's containers are kept, whatever the endpoint is called.

SageMaker creates the log group `/aws/sagemaker/Endpoints/<endpoint>` itself, as soon as the first container writes, and
without a retention period. CloudFormation cannot create the group earlier, because the endpoint's name may be
generated, or later, because the group then exists already. So a schedule of EventBridge Scheduler calls
PutRetentionPolicy every day, through a universal target and without a function. The first call is made when the
schedule is created, and repeated until the group exists. Later calls also set the period of a group that was deleted
and created again.

Sources: "Schedule types" and "Using universal targets" in EventBridge Scheduler's user guide; "Overview of managing
access permissions to your CloudWatch Logs resources", which requires the ARN with `:*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.naming.service_names import role_description
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["DAYS", "LogRetention", "component_log_group_name", "log_group_name"]

DAYS: Final[Mapping[logs.RetentionDays, int]] = MappingProxyType(
    {
        logs.RetentionDays.ONE_DAY: 1,
        logs.RetentionDays.THREE_DAYS: 3,
        logs.RetentionDays.FIVE_DAYS: 5,
        logs.RetentionDays.ONE_WEEK: 7,
        logs.RetentionDays.TWO_WEEKS: 14,
        logs.RetentionDays.ONE_MONTH: 30,
        logs.RetentionDays.TWO_MONTHS: 60,
        logs.RetentionDays.THREE_MONTHS: 90,
        logs.RetentionDays.FOUR_MONTHS: 120,
        logs.RetentionDays.FIVE_MONTHS: 150,
        logs.RetentionDays.SIX_MONTHS: 180,
        logs.RetentionDays.ONE_YEAR: 365,
        logs.RetentionDays.THIRTEEN_MONTHS: 400,
        logs.RetentionDays.EIGHTEEN_MONTHS: 545,
        logs.RetentionDays.TWO_YEARS: 731,
        logs.RetentionDays.THREE_YEARS: 1096,
        logs.RetentionDays.FIVE_YEARS: 1827,
        logs.RetentionDays.SIX_YEARS: 2192,
        logs.RetentionDays.SEVEN_YEARS: 2557,
        logs.RetentionDays.EIGHT_YEARS: 2922,
        logs.RetentionDays.NINE_YEARS: 3288,
        logs.RetentionDays.TEN_YEARS: 3653,
    }
)
"""The days of each value, which the enum has in TypeScript but not in Python. `INFINITE` has none."""


class LogRetention(Construct):
    """Limits the retention of a log group that the app does not create.

    Args:
        scope: the construct that it belongs to.
        id: the construct's id.
        log_group_name: the group's name; may be a token.
        retention: the retention period; not `INFINITE`, the period of a new group.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        log_group_name: str,
        retention: logs.RetentionDays,
    ) -> None:
        super().__init__(scope, id)
        stack = stack_of(self)
        group = stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{log_group_name}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        role = iam.Role(
            self,
            "Role",
            # "Cross-service confused deputy prevention in EventBridge Scheduler"
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            description=role_description(f"cdk-triton: sets how long the logs of {scope.node.path} are kept"),
        )
        allow(role, Statement(actions=["logs:PutRetentionPolicy"], resources=[group]))
        acknowledge_wildcards(role, {group: "This is one log group. In policies, the ARN of a log group ends in :*."})
        schedule = scheduler.CfnSchedule(
            self,
            "Resource",
            description=f"Keeps the logs of {scope.node.path} for {DAYS[retention]} days"[-512:],
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            schedule_expression="rate(1 day)",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=f"arn:{stack.partition}:scheduler:::aws-sdk:cloudwatchlogs:putRetentionPolicy",
                role_arn=role.role_arn,
                input=stack.to_json_string({"LogGroupName": log_group_name, "RetentionInDays": DAYS[retention]}),
            ),
        )
        schedule.node.add_dependency(role.node.find_child("Permissions"))  # it is called as soon as it is made


def log_group_name(endpoint_name: str) -> str:
    """The group that SageMaker creates for an endpoint ("Logging Amazon SageMaker AI with Amazon CloudWatch")."""
    return f"/aws/sagemaker/Endpoints/{endpoint_name}"


def component_log_group_name(component_name: str) -> str:
    """The group of an inference component, in which each copy has a stream."""
    return f"/aws/sagemaker/InferenceComponents/{component_name}"
