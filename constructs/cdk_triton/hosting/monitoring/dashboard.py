"""What a person looks at when an endpoint is slow, fails or costs too much: a section of widgets per variant.

Times are shown in milliseconds and seconds, GPUs in percent of each, shares in percent; SageMaker publishes
microseconds, sums over the GPUs, and fractions. A line marks what an alarm waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jsii
from aws_cdk import Duration, IStableNumberProducer, Lazy
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.hosting.endpoint_variant import EndpointVariant
from cdk_triton.hosting.metrics import PER_MILLISECOND, PER_PERCENT, PER_SECOND, of_instance_type

__all__ = ["section"]

COLUMNS = 24
WIDTH = 8
HEIGHT = 6

Alarms = Mapping[str, cloudwatch.Alarm]
Widgets = list[cloudwatch.IWidget]


def section(variant: EndpointVariant, alarms: Alarms, thresholds: Mapping[str, float]) -> list[Widgets]:
    """The rows of a variant.

    Args:
        variant: the variant.
        alarms: its alarms by name; the row of their states is left out where there are none.
        thresholds: those of the alarms, in the units that the metrics have.
    """
    model, pools = variant.variant.model, bool(variant.variant.fallback_models)
    lines = {name: value for name, value in thresholds.items() if name in alarms}
    served = [f"{each.platform.label} on {each.platform.instance_type}" for each in variant.variant.models]
    title = f"## Variant {variant.variant.variant_name}: {', else '.join(served)}"
    rows: list[Widgets] = [[cloudwatch.TextWidget(markdown=title, width=COLUMNS, height=1)]]
    if alarms:
        rows.append([cloudwatch.AlarmStatusWidget(alarms=list(alarms.values()), width=COLUMNS, height=3)])
    rows += [
        [_requests(variant), _latency(variant, lines), _errors(variant)],
        *([_queue(variant, lines)] if variant.is_async else []),
        [
            _of_gpus("GPU", variant.metric_gpu_utilization, variant, lines.get("GpuUtilization")),
            _of_gpus("GPU memory", variant.metric_gpu_memory_utilization, variant, lines.get("GpuMemory")),
            _host(variant, lines),
        ],
        [_instances(variant), _requests_per_instance(variant)],
        *([_by_instance_type(variant)] if pools else []),
    ]
    return rows + (_loading(variant, lines) if model.is_multi_model else [])


def _by_instance_type(variant: EndpointVariant) -> Widgets:
    """The row of a variant with instance pools: which of them serves, and how well."""
    types = [model.platform.instance_type for model in variant.variant.models]

    def each(metric: cloudwatch.Metric, unit: float = 1) -> list[cloudwatch.IMetric]:
        return [_scaled(of_instance_type(metric, kind), unit, kind, f"_{at}") for at, kind in enumerate(types)]

    latency = _graph(
        "Latency by instance type, p99, ms", each(variant.metric_model_latency(statistic="p99"), PER_MILLISECOND)
    )
    if variant.is_async:
        return [latency]
    return [
        _graph("Requests by instance type", each(variant.metric_invocations())),
        latency,
        _graph("Not 2xx in the container by instance type", each(variant.metric_invocation_model_errors())),
    ]


# SageMaker publishes no Invocations, InvocationsPerInstance, OverheadLatency and InvocationModelErrors of an
# asynchronous endpoint; where a graph needs them, such an endpoint has another one.


def _requests(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    if variant.is_async:
        answered = variant.metric_model_latency(statistic="SampleCount")
        return _graph("Requests", [_label(answered, "answered by the container")])
    return _graph(
        "Requests",
        [_label(variant.metric_invocations(), "requests")],
        [_label(variant.metric_concurrent_requests(), "at a time")],
    )


def _requests_per_instance(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    if variant.is_async:
        return _graph("Backlog per instance", [_label(variant.metric_backlog_size_per_instance(), "requests")])
    return _graph("Requests per instance", [_label(variant.metric_invocations_per_instance(), "requests")])


def _queue(variant: EndpointVariant, lines: Mapping[str, float]) -> Widgets:
    """The row of an asynchronous endpoint: what waits, how long, and what never gets an answer."""
    age = _label(variant.metric_oldest_request_age(), "oldest request")
    return [
        _graph("Requests that wait or are worked on", [_label(variant.metric_backlog_size(), "backlog")]),
        _graph("Age of the oldest request, s", [age], marks=_marks(lines.get("OldestRequest"))),
        _graph(
            "Requests without an answer",
            [
                _label(variant.metric_failed_requests(), "failed"),
                _label(variant.metric_expired_requests(), "expired in the queue"),
            ],
        ),
    ]


def _latency(variant: EndpointVariant, lines: Mapping[str, float]) -> cloudwatch.GraphWidget:
    percentiles = [
        _scaled(variant.metric_model_latency(statistic=each), PER_MILLISECOND, f"model {each}")
        for each in ("p50", "p90", "p99")
    ]
    if not variant.is_async:
        percentiles.append(_scaled(variant.metric_overhead_latency(), PER_MILLISECOND, "overhead, mean"))
    return _graph("Latency, ms", percentiles, marks=_marks(lines.get("ModelLatency"), PER_MILLISECOND))


def _errors(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    shown = [
        _label(variant.metric_invocation_4xx_errors(), "4xx"),
        _label(variant.metric_invocation_5xx_errors(), "5xx"),
    ]
    if not variant.is_async:
        shown.append(_label(variant.metric_invocation_model_errors(), "not 2xx in the container"))
    return _graph("Errors", shown)


def _host(variant: EndpointVariant, lines: Mapping[str, float]) -> cloudwatch.GraphWidget:
    return _graph(
        "Memory and disk (left), CPU in percent of one vCPU (right)",
        [
            _label(variant.metric_memory_utilization(statistic="Maximum"), "memory, fullest"),
            _label(variant.metric_disk_utilization(statistic="Maximum"), "disk, fullest"),
        ],
        [_label(variant.metric_cpu_utilization(), "CPU, mean")],
        marks=_marks(lines.get("Memory"), label="memory alarm") + _marks(lines.get("Disk"), label="disk alarm"),
    )


def _instances(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    limits = [
        cloudwatch.HorizontalAnnotation(value=Lazy.number(_Limit(variant, each)), label=each)
        for each in ("minimum", "maximum")
    ]
    if variant.is_async:
        backlog, per_instance = variant.metric_backlog_size(), variant.metric_backlog_size_per_instance()
        count: cloudwatch.IMetric = cloudwatch.MathExpression(
            expression="backlog / perInstance",
            using_metrics={"backlog": backlog, "perInstance": per_instance},
            label="instances, while requests wait",
            period=Duration.minutes(1),
        )
        return _graph("Instances that answer", [count], marks=limits)
    return _graph("Instances that answer", [variant.metric_instance_count()], marks=limits)


def _loading(variant: EndpointVariant, lines: Mapping[str, float]) -> list[Widgets]:
    """The rows of a multi-model endpoint."""
    waits = [
        _scaled(variant.metric_model_loading_wait_time(statistic="Maximum"), PER_SECOND, "wait, longest"),
        _scaled(variant.metric_model_downloading_time(), PER_SECOND, "download, mean"),
        _scaled(variant.metric_model_loading_time(), PER_SECOND, "load, mean"),
        _scaled(variant.metric_model_unloading_time(), PER_SECOND, "unload, mean"),
    ]
    unloads = _label(variant.metric_model_unloading_time(statistic="SampleCount"), "unloads")
    return [
        [
            _graph("Loaded archives", [_label(variant.metric_loaded_model_count(), "per instance")], [unloads]),
            _graph(
                "Requests that find their archive loaded, percent",
                [_scaled(variant.metric_model_cache_hit(), PER_PERCENT, "cache hits")],
                marks=_marks(lines.get("CacheMisses"), PER_PERCENT),
                maximum=100,
            ),
            _graph("Loading, s", waits, marks=_marks(lines.get("LoadingWait"), PER_SECOND)),
        ]
    ]


def _of_gpus(
    what: str, metric: Callable[..., cloudwatch.Metric], variant: EndpointVariant, line: float | None
) -> cloudwatch.GraphWidget:
    platforms = [model.platform for model in variant.variant.models]
    mean, highest = metric(statistic="Average"), metric(statistic="Maximum")
    if len(platforms) == 1:
        gpus = platforms[0].gpu_count
        shown = [_scaled(mean, gpus, "mean"), _scaled(highest, gpus, "highest")]
        return _graph(f"{what}, percent, of each", shown, marks=_marks(line, gpus))
    shown = [
        _scaled(of_instance_type(found, each.instance_type), each.gpu_count, f"{each.instance_type}, {word}", f"_{at}")
        for at, each in enumerate(platforms)
        for found, word in ((mean, "mean"), (highest, "highest"))
    ]
    return _graph(f"{what}, percent, of each", shown, marks=_marks(line))


def _graph(
    title: str,
    left: list[cloudwatch.IMetric],
    right: list[cloudwatch.IMetric] | None = None,
    *,
    marks: list[cloudwatch.HorizontalAnnotation] | None = None,
    maximum: float | None = None,
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=left,
        right=right,
        left_annotations=marks,
        left_y_axis=cloudwatch.YAxisProps(min=0, max=maximum),
        right_y_axis=None if right is None else cloudwatch.YAxisProps(min=0),
        width=WIDTH,
        height=HEIGHT,
        period=Duration.minutes(1),
    )


def _label(metric: cloudwatch.Metric, label: str) -> cloudwatch.IMetric:
    return metric.with_(label=label)


def _scaled(metric: cloudwatch.Metric, unit: float, label: str, suffix: str = "") -> cloudwatch.IMetric:
    # An identifier of its own: within a widget, one may stand for one metric only.
    identifier = f"m_{metric.metric_name}_{metric.statistic}{suffix}"
    return cloudwatch.MathExpression(
        expression=f"{identifier} / {unit}",
        using_metrics={identifier: metric},
        label=label,
        period=Duration.minutes(1),
    )


def _marks(line: float | None, unit: float = 1, label: str = "alarm") -> list[cloudwatch.HorizontalAnnotation]:
    return [] if line is None else [cloudwatch.HorizontalAnnotation(value=line / unit, label=label)]


@jsii.implements(IStableNumberProducer)
class _Limit:
    """A limit of a variant's instance count, which may be scaled after the dashboard was made."""

    def __init__(self, variant: EndpointVariant, which: str) -> None:
        self._variant = variant
        self._which = which

    @jsii.member(jsii_name="produce")
    def produce(self) -> float:
        scaled = self._variant.scalable_instance_count
        if scaled is None:
            return self._variant.variant.initial_instance_count
        return scaled.min_capacity if self._which == "minimum" else scaled.max_capacity
