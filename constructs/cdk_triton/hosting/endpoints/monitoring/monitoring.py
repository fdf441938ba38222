"""`EndpointMonitoring`: dashboard, alarms and the retention of logs of one endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton._tokens import sample_note, with_samples
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import warn_about_topic
from cdk_triton.hosting.endpoints.monitoring.alarms import AlarmThresholds, Watched, add_alarms
from cdk_triton.hosting.endpoints.monitoring.endpoint_alarms import EndpointAlarms
from cdk_triton.hosting.endpoints.monitoring.log_retention import LogRetention
from cdk_triton.hosting.endpoints.monitoring.widgets import COLUMNS
from cdk_triton.hosting.naming.name_lookup import NameLookup
from cdk_triton.hosting.naming.runbooks import runbook_of
from cdk_triton.hosting.naming.stacks import region_of, require_own_region, share_an_account, stack_of
from cdk_triton.hosting.naming.taken_names import take_name

__all__ = ["ID", "EndpointMonitoring", "check_not_monitored"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
"""The name of a dashboard: "The maximum length is 255, and valid characters are A-Z, a-z, 0-9, "-", and "_""
(PutDashboard in the API of CloudWatch)."""


ID: Final = "Monitoring"
"""The construct's id below its endpoint."""


def _check_dashboard(scope: Construct, name: str) -> None:
    """Reject a name that CloudWatch rejects, or that another endpoint of the account has for its dashboard."""
    if not _NAME.fullmatch(with_samples(name)):
        raise ConfigurationError(
            f"dashboard_name is {quoted(with_samples(name))}{sample_note(name)}: use 1 to 255 letters, digits, '-' and "
            "'_'"
        )
    fix = "names of dashboards are unique in an account, in all regions: give each endpoint a name of its own"
    take_name(scope, "dashboard_name", name, share_an_account, fix)


def check_not_monitored(scope: Construct) -> None:
    """Reject a second call of `monitor()`.

    Raises:
        ConfigurationError: the endpoint is monitored already.
    """
    if scope.node.try_find_child(ID) is not None:
        raise ConfigurationError(
            f"{scope.node.path} is monitored already: use the object that the first monitor() returned"
        )


class EndpointMonitoring(Construct):
    """The result of `TritonEndpoint.monitor` and `TritonComponents.monitor`.

    Attributes:
        dashboard: the endpoint's dashboard, with a section for each variant or component.
        variants: the alarms of each production variant by its name, such as
            `monitoring.variants["AllTraffic"].server_errors`. A shadow variant has no alarms, because callers do not
            get its responses.
        components: the alarms of each inference component of `TritonComponents`, by the component's id.

    Args:
        scope: the endpoint.
        id: the construct's id.
        endpoint_name: the endpoint's name; the name may be a token.
        log_group: the log group that the dashboard names.
        topic: the topic that every alarm notifies, or None.
        thresholds: the thresholds of the alarms.
        log_retention: how long the logs are kept.
        runbook_url: the page that alarms and dashboard link to. None: the CDK context value `cdk-triton:runbookUrl`,
            if it is set.
        dashboard_name: the dashboard's name. None: CloudFormation generates one. The name must be unique in the
            account, over all regions (PutDashboard).
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        log_group: str,
        topic: sns.ITopic | None,
        thresholds: AlarmThresholds | None,
        log_retention: logs.RetentionDays,
        runbook_url: str | None,
        dashboard_name: str | None,
    ) -> None:
        runbook = runbook_of(scope, runbook_url)
        if topic is not None:
            # "Invalid region ca-central-1 specified. Only us-west-2 is supported." (PutMetricAlarm's answer, in
            # cds-snc/notification-terraform#128)
            reason = f"alarms publish to topics of their own region only: use a topic in {region_of(scope)}"
            require_own_region(scope, topic, reason)
        if dashboard_name is not None:
            _check_dashboard(scope, dashboard_name)
        super().__init__(scope, id)
        self._limits = AlarmThresholds() if thresholds is None else thresholds
        self._runbook = runbook
        self._retention = log_retention
        self._of = {
            kind: NameLookup[EndpointAlarms](f"there are no alarms of a {kind}", {})
            for kind in ("variant", "component")
        }
        self.variants: Mapping[str, EndpointAlarms] = MappingProxyType(self._of["variant"])
        self.components: Mapping[str, EndpointAlarms] = MappingProxyType(self._of["component"])
        self._action: cloudwatch_actions.SnsAction | None = None
        if topic is not None:
            # A topic with a policy of its own, for example one that requires TLS, lacks the default policy that allows
            # alarms. The condition is that of "Example cases for Amazon SNS access control", and holds for the topic's
            # key too.
            account = {"StringEquals": {"aws:SourceAccount": stack_of(self).account}}
            warn_about_topic(self, topic, "cloudwatch.amazonaws.com")
            topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com", conditions=account))
            self._action = cloudwatch_actions.SnsAction(topic)
        links = f"# {endpoint_name}\nLogs: `{log_group}`."
        links += "" if runbook is None else f" Runbook: {runbook.url}"
        self.dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=dashboard_name)
        self.dashboard.add_widgets(cloudwatch.TextWidget(markdown=links, width=COLUMNS, height=2))

    @property
    def alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """Every alarm of the endpoint. Alarms of components that are added later are not included."""
        return self._all(lambda each: each.alarms)

    @property
    def errors(self) -> tuple[cloudwatch.Alarm, ...]:
        """The `errors` of every variant or component, for `roll_back_on`."""
        return self._all(lambda each: each.errors)

    @property
    def latency(self) -> tuple[cloudwatch.Alarm, ...]:
        """The `latency` of every variant or component, for `roll_back_on`."""
        return self._all(lambda each: each.latency)

    def _all(self, of: Callable[[EndpointAlarms], tuple[cloudwatch.Alarm, ...]]) -> tuple[cloudwatch.Alarm, ...]:
        return tuple(alarm for named in self._of.values() for each in named.values() for alarm in of(each))

    def _watch(self, watched: Watched, *, has_alarms: bool = True) -> None:
        """Add the alarms and the section of a variant or a component."""
        alarms = add_alarms(watched, self._limits, self._runbook) if has_alarms else {}
        if has_alarms:
            self._of[watched.kind][watched.name] = EndpointAlarms(f"{watched.kind} {watched.name!r}", alarms)
        if self._action is not None:
            for alarm in alarms.values():
                alarm.add_alarm_action(self._action)
        for row in watched.section(alarms, watched.limits(self._limits) if has_alarms else {}):
            self.dashboard.add_widgets(*row)

    def _limit_log_retention(self, scope: Construct, id: str, log_group: str) -> None:
        if self._retention is not logs.RetentionDays.INFINITE:
            LogRetention(scope, id, log_group_name=log_group, retention=self._retention)
