"""`EndpointMonitoring`: dashboard, alarms and the retention of logs of one endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton._tokens import sample_note, with_samples
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting._cdk.name_lookup import NameLookup
from cdk_triton.hosting._cdk.stacks import require_own_region, stack_of
from cdk_triton.hosting.endpoint_variant import EndpointVariant
from cdk_triton.hosting.keys import warn_about_topic
from cdk_triton.hosting.monitoring.alarms import RULES, AlarmThresholds, add_alarms, threshold
from cdk_triton.hosting.monitoring.dashboard import COLUMNS, section
from cdk_triton.hosting.monitoring.log_retention import LogRetention, log_group_name

__all__ = ["EndpointMonitoring"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
"""The name of a dashboard: "The maximum length is 255, and valid characters are A-Z, a-z, 0-9, "-", and "_""
(PutDashboard in the API of CloudWatch)."""


class EndpointMonitoring(Construct):
    """What `TritonEndpoint.monitor` returns.

    Attributes:
        dashboard: one for the endpoint, with a section per variant.
        alarms: by the variant's name, then by the alarm's; another name is a ConfigurationError. A shadow variant has
            none: nobody gets its answers.

    Args:
        scope: the endpoint.
        id: the construct's id.
        endpoint_name: the endpoint's name; may be a token.
        variants: the production variants.
        shadow: the shadow variant.
        topic: where every alarm is published.
        thresholds: what the alarms wait for.
        log_retention: how long the logs are kept.
        runbook: the page that alarms and dashboard link to; None if there is none.
        dashboard_name: the dashboard's name; None: CloudFormation makes one up. "All dashboards in your account are
            global, not region-specific" (PutDashboard).
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        variants: Sequence[EndpointVariant],
        shadow: EndpointVariant | None = None,
        topic: sns.ITopic | None = None,
        thresholds: AlarmThresholds | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        runbook: str | None = None,
        dashboard_name: str | None = None,
    ) -> None:
        if dashboard_name is not None and not _NAME.fullmatch(with_samples(dashboard_name)):
            raise ConfigurationError(
                f"dashboard_name is {quoted(with_samples(dashboard_name))}{sample_note(dashboard_name)}: use 1 to 255 "
                "letters, digits, '-' and '_'"
            )
        if runbook is not None and (not runbook or "#" in runbook):
            raise ConfigurationError(
                f"runbook is {quoted(runbook)}: use the address of a page, to which '#' and the alarm's name are added"
            )
        if topic is not None:
            # "Invalid region ca-central-1 specified. Only us-west-2 is supported." (PutMetricAlarm's answer, in
            # cds-snc/notification-terraform#128)
            require_own_region(scope, topic, "alarms publish to topics of their own region only, so give one of it")
        super().__init__(scope, id)
        limits = AlarmThresholds() if thresholds is None else thresholds
        self.alarms: Mapping[str, Mapping[str, cloudwatch.Alarm]] = MappingProxyType(
            NameLookup(
                "there are no alarms of a variant",
                {each.variant.variant_name: _alarms(each, limits, runbook) for each in variants},
            )
        )
        if topic is not None:
            # A topic whose policy says anything, such as that it wants TLS, has no default policy that lets alarms in.
            # The condition is that of "Example cases for Amazon SNS access control", and holds for the topic's key too.
            account = {"StringEquals": {"aws:SourceAccount": stack_of(self).account}}
            warn_about_topic(self, topic, "cloudwatch.amazonaws.com")
            topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com", conditions=account))
            action = cloudwatch_actions.SnsAction(topic)
            for alarm in (alarm for alarms in self.alarms.values() for alarm in alarms.values()):
                alarm.add_alarm_action(action)
        group = log_group_name(endpoint_name)
        links = f"# {endpoint_name}\nLogs: `{group}`." + (f" Runbook: {runbook}" if runbook is not None else "")
        self.dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=dashboard_name)
        self.dashboard.add_widgets(cloudwatch.TextWidget(markdown=links, width=COLUMNS, height=2))
        for each in [*variants, *([] if shadow is None else [shadow])]:
            values = {rule.name: value for rule in RULES if (value := threshold(rule, limits, each)) is not None}
            for row in section(each, self.alarms.get(each.variant.variant_name, {}), values):
                self.dashboard.add_widgets(*row)
        if log_retention is not logs.RetentionDays.INFINITE:
            LogRetention(self, "LogRetention", log_group_name=group, retention=log_retention)


def _alarms(variant: EndpointVariant, limits: AlarmThresholds, runbook: str | None) -> Mapping[str, cloudwatch.Alarm]:
    alarms = add_alarms(variant, limits, runbook)
    return MappingProxyType(NameLookup(f"variant {variant.variant.variant_name} has no alarm", alarms))
