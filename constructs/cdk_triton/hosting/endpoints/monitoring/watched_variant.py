"""A variant of an endpoint, as alarms and dashboard show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton.hosting.endpoints.monitoring.alarms import RULES, AlarmRule, AlarmThresholds, Watched, Widgets, in_units
from cdk_triton.hosting.endpoints.monitoring.dashboard import section
from cdk_triton.hosting.endpoints.monitoring.log_retention import log_group_name
from cdk_triton.hosting.endpoints.monitoring.monitoring import ID, EndpointMonitoring, check_not_monitored
from cdk_triton.hosting.endpoints.variants.endpoint_variant import EndpointVariant
from cdk_triton.hosting.endpoints.variants.metrics import of_instance_type

__all__ = ["WatchedVariant", "monitor_variants"]


class WatchedVariant(Watched):
    """A variant.

    Args:
        variant: the variant.
    """

    kind = "variant"
    rules = RULES

    def __init__(self, variant: EndpointVariant) -> None:
        self.name = variant.variant.variant_name
        self.construct = variant
        self._variant = variant

    def limit(self, rule: AlarmRule, thresholds: AlarmThresholds) -> float | None:
        """See `Watched`."""
        model, is_async = self._variant.variant.model, self._variant.is_async
        value = in_units(rule, thresholds)
        if rule.multi_model not in (None, model.is_multi_model) or rule.asynchronous not in (None, is_async):
            return None
        in_pools = bool(self._variant.variant.fallback_models)
        gpus = model.platform.gpu_count if rule.of_each_gpu and not in_pools else 1
        return None if value is None else value * gpus

    def metric(self, rule: AlarmRule) -> cloudwatch.IMetric:
        """See `Watched`.

        A variant with instance pools has GPUs of several instance types, which differ in number and in power. So the
        metric is that of each type, and the highest one counts. A type without instances counts as 0.
        """
        period = Duration.minutes(rule.minutes)
        metric = rule.metric(self._variant, statistic=rule.statistic, period=period)
        if not (rule.of_each_gpu and self._variant.variant.fallback_models):
            return metric
        platforms = [model.platform for model in self._variant.variant.models]
        terms = [f"FILL(m{number}, 0) / {each.gpu_count}" for number, each in enumerate(platforms)]
        return cloudwatch.MathExpression(
            expression=f"MAX([{', '.join(terms)}])",
            using_metrics={
                f"m{number}": of_instance_type(metric, each.instance_type) for number, each in enumerate(platforms)
            },
            label=f"{metric.metric_name} of each, highest instance type",
            period=period,
        )

    def section(self, alarms: Mapping[str, cloudwatch.Alarm], lines: Mapping[str, float]) -> list[Widgets]:
        """See `Watched`."""
        return section(self._variant, alarms, lines)


def monitor_variants(
    scope: Construct,
    endpoint_name: str,
    variants: Sequence[EndpointVariant],
    shadow: EndpointVariant | None,
    *,
    topic: sns.ITopic | None,
    thresholds: AlarmThresholds | None,
    log_retention: logs.RetentionDays,
    runbook_url: str | None,
    dashboard_name: str | None,
) -> EndpointMonitoring:
    """The monitoring of an endpoint with variants; see `TritonEndpoint.monitor`.

    Args:
        scope: the endpoint.
        endpoint_name: the endpoint's name.
        variants: the endpoint's production variants.
        shadow: the endpoint's shadow variant, which has no alarms.
        topic: see `EndpointMonitoring`.
        thresholds: see `EndpointMonitoring`.
        log_retention: see `EndpointMonitoring`.
        runbook_url: see `EndpointMonitoring`.
        dashboard_name: see `EndpointMonitoring`.
    """
    check_not_monitored(scope)
    log_group = log_group_name(endpoint_name)
    made = EndpointMonitoring(
        scope,
        ID,
        endpoint_name=endpoint_name,
        log_group=log_group,
        topic=topic,
        thresholds=thresholds,
        log_retention=log_retention,
        runbook_url=runbook_url,
        dashboard_name=dashboard_name,
    )
    for each in variants:
        made._watch(WatchedVariant(each))
    if shadow is not None:
        made._watch(WatchedVariant(shadow), has_alarms=False)
    made._limit_log_retention(made, "LogRetention", log_group)
    return made
