"""The alarms of an endpoint, one row each. The guide's page on monitoring has the same table.

The rows of inference components are in `watched_component`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final, Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cdk_triton._tokens import reject_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.variants.metrics import PER_MILLISECOND, PER_PERCENT, PER_SECOND, VariantMetrics
from cdk_triton.hosting.naming.runbooks import Runbook, alarm_description
from cdk_triton.sagemaker.limits import MAX_ASYNC_SECONDS, MAX_QUEUE_SECONDS

__all__ = ["RULES", "AlarmRule", "AlarmThresholds", "Watched", "Widgets", "add_alarms", "in_units"]

Widgets = list[cloudwatch.IWidget]
"""A row of a dashboard."""


_LONGEST: Final = {"model_latency": MAX_ASYNC_SECONDS, "oldest_request": MAX_QUEUE_SECONDS}
"""Seconds that these times cannot exceed, because SageMaker then gives up."""


@dataclass(frozen=True, kw_only=True)
class AlarmThresholds:
    """The thresholds of an endpoint's alarms. None omits an alarm.

    Percentages are above 0 and below 100, because no metric exceeds 100 %. An alarm on a metric that an endpoint does
    not publish is omitted, so a company can use the same thresholds for endpoints of every kind.

    Attributes:
        server_errors_percent: the share of requests that get a 5xx status.
        model_errors_percent: the share of requests for which the container does not return a 2xx status, including
            time-outs. Omitted for an asynchronous endpoint, which has `failed_requests` instead.
        client_errors_percent: the share of requests that get a 4xx status.
        model_latency: the 99th percentile of the time that the model takes. SageMaker stops waiting after 60 seconds,
            or at an asynchronous endpoint after an hour at the latest.
        gpu_utilization_percent: the average utilization of all GPUs.
        gpu_memory_percent: the share of a GPU's memory in use, on the fullest instance. Omitted for a multi-model
            endpoint, which fills the memory with models and unloads them when it needs space.
        memory_percent: the share of memory in use on the fullest instance. For a component, the share of its copies'
            reserved memory that is in use.
        disk_percent: the share of disk space in use on the fullest instance.
        cache_hit_percent: the share of requests to a multi-model endpoint that find their model loaded. The alarm goes
            off below this share.
        loading_wait: the longest time that a request to a multi-model endpoint waits for its model to load.
        failed_requests: the number of requests to an asynchronous endpoint that fail or expire within five minutes. The
            default is 0, as for a dead-letter queue, because callers may not notice these failures.
        oldest_request: the longest time that a request to an asynchronous endpoint is queued. SageMaker drops a request
            after 6 hours.
        no_capacity_requests: the number of requests to a component within five minutes that find no copy. The default
            is 0. The alarm goes off only after 20 minutes, because the first copy may take 10 minutes to start.

    Raises:
        ConfigurationError: a value is out of its range.
    """

    server_errors_percent: float | None = 1
    model_errors_percent: float | None = 5
    client_errors_percent: float | None = 10
    model_latency: Duration | None = field(default_factory=lambda: Duration.seconds(5))
    gpu_utilization_percent: float | None = 90
    gpu_memory_percent: float | None = 95
    memory_percent: float | None = 90
    disk_percent: float | None = 85
    cache_hit_percent: float | None = 80
    loading_wait: Duration | None = field(default_factory=lambda: Duration.seconds(30))
    failed_requests: int | None = 0
    oldest_request: Duration | None = field(default_factory=lambda: Duration.minutes(30))
    no_capacity_requests: int | None = 0

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            value: object = getattr(self, name)
            if value is None:
                continue
            if name.endswith("_percent"):
                reject_token(value, name)
                if not _is_percentage(value):
                    raise ConfigurationError(
                        f"{name} is {value!r}: use a number above 0 and below 100, known at synth, or None to "
                        "omit the alarm"
                    )
            elif name in ("failed_requests", "no_capacity_requests"):
                reject_token(value, name)
                if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                    raise ConfigurationError(
                        f"{name} is {value!r}: use a number of requests, 0 or more, or None to omit the alarm"
                    )
            elif not isinstance(value, Duration) or value.is_unresolved() or value.to_milliseconds() <= 0:
                text = value.to_human_string() if isinstance(value, Duration) else repr(value)
                raise ConfigurationError(
                    f"{name} is {text}: use a Duration above 0 and known at synth, or None to omit the alarm"
                )
            elif name in _LONGEST and value.to_milliseconds() >= 1000 * _LONGEST[name]:
                raise ConfigurationError(
                    f"{name} is {value.to_human_string()}, but SageMaker ends a request after {_LONGEST[name]} seconds "
                    "at the latest, so the alarm would never go off: use a shorter Duration, or None to omit the alarm"
                )


@dataclass(frozen=True, kw_only=True)
class AlarmRule:
    """One row of the table.

    Attributes:
        name: the alarm's construct id, and its section in the runbook.
        metric: the watched metric.
        statistic: the statistic of the metric.
        threshold: the attribute of `AlarmThresholds`.
        unit: the divisor that turns the metric into the threshold's unit: percent, milliseconds or requests.
        of_each_gpu: whether the threshold is for one GPU while the metric is the sum of all.
        meaning: the fault, for the person on call; `{}` is the threshold.
        first_step: the first step, for a reader without a runbook.
        minutes: the period.
        breaching: how many of the evaluated datapoints must breach the threshold.
        evaluated: how many datapoints the alarm evaluates.
        below: whether the alarm goes off below the threshold instead of above.
        multi_model: True for a rule of multi-model endpoints only, False for a rule of other endpoints only; None for
            both.
        asynchronous: the same for asynchronous endpoints.
    """

    name: str
    metric: Callable[..., cloudwatch.Metric]
    statistic: str
    threshold: str
    unit: float = 1
    of_each_gpu: bool = False
    meaning: str
    first_step: str
    minutes: int
    breaching: int
    evaluated: int
    below: bool = False
    multi_model: bool | None = None
    asynchronous: bool | None = None


# Errors and latency have periods of one minute, because callers notice them at once. Utilization has periods of five
# minutes, because it changes with every request.
RULES: Final = (
    AlarmRule(
        name="ServerErrors",
        metric=VariantMetrics.metric_invocation_5xx_errors,
        statistic="Average",
        threshold="server_errors_percent",
        unit=PER_PERCENT,
        meaning="more than {} of the requests are answered with a 5xx status",
        first_step="Read the server's message in the log; if the errors began with a deployment, deploy the previous "
        "commit",
        minutes=1,
        breaching=3,
        evaluated=5,
    ),
    AlarmRule(
        name="ModelErrors",
        metric=VariantMetrics.metric_invocation_model_errors,
        statistic="Average",
        threshold="model_errors_percent",
        unit=PER_PERCENT,
        meaning="more than {} of the requests fail in the container, or time out there",
        first_step="A latency near 60 seconds means time-outs; otherwise look for a restart of tritonserver in the log",
        minutes=1,
        breaching=5,
        evaluated=5,
        asynchronous=False,  # SageMaker does not publish it for them
    ),
    AlarmRule(
        name="ClientErrors",
        metric=VariantMetrics.metric_invocation_4xx_errors,
        statistic="Average",
        threshold="client_errors_percent",
        unit=PER_PERCENT,
        meaning="more than {} of the requests are answered with a 4xx status",
        first_step="Read the message of such an answer. Likely causes are a wrong input name, shape or "
        "type, or an unknown target model",
        minutes=5,
        breaching=3,
        evaluated=3,
    ),
    AlarmRule(
        name="ModelLatency",
        metric=VariantMetrics.metric_model_latency,
        statistic="p99",
        threshold="model_latency",
        unit=PER_MILLISECOND,
        meaning="one request in a hundred takes more than {} in the container",
        first_step="If the GPUs are busy, add instances; otherwise check the CPU, the batching's queue delay and the "
        "number of model instances",
        minutes=1,
        breaching=5,
        evaluated=5,
    ),
    AlarmRule(
        name="GpuUtilization",
        metric=VariantMetrics.metric_gpu_utilization,
        statistic="Average",
        threshold="gpu_utilization_percent",
        of_each_gpu=True,
        meaning="the GPUs are busy for more than {} of the time",
        first_step="If the instances are at their maximum, raise max_capacity; otherwise lower the scaling's target",
        minutes=5,
        breaching=3,
        evaluated=3,
    ),
    AlarmRule(
        name="GpuMemory",
        metric=VariantMetrics.metric_gpu_memory_utilization,
        statistic="Maximum",
        threshold="gpu_memory_percent",
        of_each_gpu=True,
        meaning="more than {} of the GPUs' memory is used on an instance",
        first_step="Use fewer model instances, a smaller max_batch_size, or an instance type with a larger GPU",
        minutes=5,
        breaching=3,
        evaluated=3,
        multi_model=False,
    ),
    AlarmRule(
        name="Memory",
        metric=VariantMetrics.metric_memory_utilization,
        statistic="Maximum",
        threshold="memory_percent",
        meaning="more than {} of the memory of an instance is used",
        first_step="If memory use has grown since the last deployment, a Python model leaks memory; otherwise use a "
        "larger instance type",
        minutes=5,
        breaching=3,
        evaluated=3,
    ),
    AlarmRule(
        name="Disk",
        metric=VariantMetrics.metric_disk_utilization,
        statistic="Maximum",
        threshold="disk_percent",
        meaning="more than {} of the disk of an instance is used",
        first_step="Remove the files that models write, or give the instances a larger volume",
        minutes=5,
        breaching=3,
        evaluated=3,
    ),
    AlarmRule(
        name="CacheMisses",
        metric=VariantMetrics.metric_model_cache_hit,
        statistic="Average",
        threshold="cache_hit_percent",
        unit=PER_PERCENT,
        meaning="less than {} of the requests find their archive loaded",
        first_step="Normal for minutes after a deployment; else use instances with more memory for the archives",
        minutes=5,
        breaching=6,
        evaluated=6,
        below=True,
        multi_model=True,
    ),
    AlarmRule(
        name="LoadingWait",
        metric=VariantMetrics.metric_model_loading_wait_time,
        statistic="Maximum",
        threshold="loading_wait",
        unit=PER_MILLISECOND,
        meaning="requests wait more than {} until their archive is loaded",
        first_step="Call rare archives once after a deployment; the dashboard has download and load times",
        minutes=5,
        breaching=3,
        evaluated=3,
        multi_model=True,
    ),
    AlarmRule(
        name="FailedRequests",
        metric=VariantMetrics.metric_failed_requests,
        statistic="Sum",
        threshold="failed_requests",
        meaning="more than {} requests failed within five minutes",
        first_step="Read their error messages below the prefix of failures, and the server's log",
        minutes=5,
        breaching=1,
        evaluated=1,
        asynchronous=True,
    ),
    AlarmRule(
        name="ExpiredRequests",
        metric=VariantMetrics.metric_expired_requests,
        statistic="Sum",
        threshold="failed_requests",
        meaning="more than {} requests expired in the queue within five minutes",
        first_step="If the instances are at their maximum, raise max_capacity; otherwise find out why none starts",
        minutes=5,
        breaching=1,
        evaluated=1,
        asynchronous=True,
    ),
    AlarmRule(
        name="OldestRequest",
        metric=VariantMetrics.metric_oldest_request_age,
        statistic="Maximum",
        threshold="oldest_request",
        unit=PER_MILLISECOND / PER_SECOND,
        meaning="the oldest request is older than {}",
        first_step="If the instances are at their maximum, raise max_capacity; otherwise find out why none starts",
        minutes=5,
        breaching=3,
        evaluated=3,
        asynchronous=True,
    ),
)


class Watched(ABC):
    """A variant or a component that alarms and dashboard monitor.

    Attributes:
        kind: `variant` or `component`.
        name: the name by which users find its alarms.
        construct: the parent of the alarms.
        rules: the rows of its alarms.
    """

    kind: ClassVar[Literal["variant", "component"]]
    name: str
    construct: Construct
    rules: Sequence[AlarmRule]

    @abstractmethod
    def limit(self, rule: AlarmRule, thresholds: AlarmThresholds) -> float | None:
        """The threshold of a rule in the metric's own unit; None without such an alarm."""

    @abstractmethod
    def metric(self, rule: AlarmRule) -> cloudwatch.IMetric:
        """The metric or expression that the alarm of a rule watches."""

    @abstractmethod
    def section(self, alarms: Mapping[str, cloudwatch.Alarm], lines: Mapping[str, float]) -> list[Widgets]:
        """The rows of the dashboard.

        Args:
            alarms: the alarms by name; without alarms, the row with the states of the alarms is omitted.
            lines: the thresholds of the alarms, in the units of the metrics.
        """

    def limits(self, thresholds: AlarmThresholds) -> dict[str, float]:
        """The thresholds of all its alarms by their names."""
        found = {rule.name: self.limit(rule, thresholds) for rule in self.rules}
        return {name: value for name, value in found.items() if value is not None}


def in_units(rule: AlarmRule, thresholds: AlarmThresholds) -> float | None:
    """A threshold in the unit of its metric, for one GPU; None if the alarm is turned off."""
    value: float | Duration | None = getattr(thresholds, rule.threshold)
    if value is None:
        return None
    return (value.to_milliseconds() if isinstance(value, Duration) else value) * rule.unit


def add_alarms(watched: Watched, thresholds: AlarmThresholds, runbook: Runbook | None) -> dict[str, cloudwatch.Alarm]:
    """Create the alarms of a variant or component below its child `Alarms`, and return them by name.

    An alarm links to its section of the runbook; without a runbook, it contains the first step itself.

    Raises:
        ConfigurationError: the address of the runbook is too long for a description.
    """
    scope = Construct(watched.construct, "Alarms")
    made = {}
    for rule in watched.rules:
        limit = watched.limit(rule, thresholds)
        if limit is None:
            continue
        meaning = rule.meaning.format(_text(rule.threshold, getattr(thresholds, rule.threshold)))
        made[rule.name] = cloudwatch.Alarm(
            scope,
            rule.name,
            alarm_description=alarm_description(watched.construct, rule.name, meaning, rule.first_step, runbook),
            metric=watched.metric(rule),
            threshold=limit,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
            if rule.below
            else cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=rule.breaching,
            evaluation_periods=rule.evaluated,
            # Without requests, SageMaker publishes neither errors nor latencies. That is no fault.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
    return made


def _text(name: str, value: float | Duration) -> str:
    if isinstance(value, Duration):
        return value.to_human_string()
    return f"{value:g} %" if name.endswith("_percent") else f"{value:,}"


def _is_percentage(value: object) -> bool:
    # A token is encoded as a negative number, which cannot be multiplied by the number of GPUs.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 100
