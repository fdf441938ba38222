"""The dashboard for an endpoint that is slow, fails or costs too much: a section of widgets per variant.

Times are shown in milliseconds and seconds, GPUs in percent of each, shares in percent; SageMaker publishes
microseconds, sums over the GPUs, and fractions. A line marks the threshold of an alarm.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.hosting.endpoints.monitoring.alarms import Widgets
from cdk_triton.hosting.endpoints.monitoring.drawings import drawings
from cdk_triton.hosting.endpoints.monitoring.widgets import (
    COLUMNS,
    errors,
    graph,
    head,
    label,
    latency,
    limits,
    marks,
    scaled,
)
from cdk_triton.hosting.endpoints.variants.endpoint_variant import EndpointVariant
from cdk_triton.hosting.endpoints.variants.metrics import PER_MILLISECOND, PER_PERCENT, PER_SECOND, of_instance_type

__all__ = ["section"]

Alarms = Mapping[str, cloudwatch.Alarm]


def section(variant: EndpointVariant, alarms: Alarms, lines: Mapping[str, float]) -> list[Widgets]:
    """The rows of a variant.

    Args:
        variant: the variant.
        alarms: the variant's alarms by name; without alarms, the row with the states of the alarms is omitted.
        lines: the thresholds of the alarms, in the units of the metrics.
    """
    model, pools = variant.variant.model, bool(variant.variant.fallback_models)
    served = [f"{each.platform.label} on {each.platform.instance_type}" for each in variant.variant.models]
    rows = head(f"Variant {variant.variant.variant_name}: {', else '.join(served)}", alarms)
    rows += [
        [
            _requests(variant),
            latency(variant, lines, is_async=variant.is_async),
            errors(variant, is_async=variant.is_async),
        ],
        *([_queue(variant, lines)] if variant.is_async else []),
        [
            _of_gpus("GPU", variant.metric_gpu_utilization, variant, lines.get("GpuUtilization")),
            _of_gpus("GPU memory", variant.metric_gpu_memory_utilization, variant, lines.get("GpuMemory")),
            _host(variant, lines),
        ],
        [_instances(variant), _requests_per_instance(variant)],
        *([_by_instance_type(variant)] if pools else []),
    ]
    return rows + (_loading(variant, lines) if model.is_multi_model else []) + drawings(model, COLUMNS)


def _by_instance_type(variant: EndpointVariant) -> Widgets:
    """For a variant with instance pools: which of them serves, and how well."""
    types = [model.platform.instance_type for model in variant.variant.models]

    def each(metric: cloudwatch.Metric, unit: float = 1) -> list[cloudwatch.IMetric]:
        return [scaled(of_instance_type(metric, kind), unit, kind, f"_{at}") for at, kind in enumerate(types)]

    latency = graph(
        "Latency by instance type, p99, ms", each(variant.metric_model_latency(statistic="p99"), PER_MILLISECOND)
    )
    if variant.is_async:
        return [latency]
    return [
        graph("Requests by instance type", each(variant.metric_invocations())),
        latency,
        graph("Not 2xx in the container by instance type", each(variant.metric_invocation_model_errors())),
    ]


# SageMaker publishes no Invocations, InvocationsPerInstance, OverheadLatency and InvocationModelErrors of an
# asynchronous endpoint; where a graph needs them, such an endpoint has another one.


def _requests(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    if variant.is_async:
        answered = variant.metric_model_latency(statistic="SampleCount")
        return graph("Requests", [label(answered, "answered by the container")])
    return graph(
        "Requests",
        [label(variant.metric_invocations(), "requests")],
        [label(variant.metric_concurrent_requests(), "at a time")],
    )


def _requests_per_instance(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    if variant.is_async:
        return graph("Backlog per instance", [label(variant.metric_backlog_size_per_instance(), "requests")])
    return graph("Requests per instance", [label(variant.metric_invocations_per_instance(), "requests")])


def _queue(variant: EndpointVariant, lines: Mapping[str, float]) -> Widgets:
    """For an asynchronous endpoint: how many requests wait, how long, and how many are never answered."""
    age = label(variant.metric_oldest_request_age(), "oldest request")
    return [
        graph("Requests that wait or are worked on", [label(variant.metric_backlog_size(), "backlog")]),
        graph("Age of the oldest request, s", [age], marks=marks(lines.get("OldestRequest"))),
        graph(
            "Requests without an answer",
            [
                label(variant.metric_failed_requests(), "failed"),
                label(variant.metric_expired_requests(), "expired in the queue"),
            ],
        ),
    ]


def _host(variant: EndpointVariant, lines: Mapping[str, float]) -> cloudwatch.GraphWidget:
    return graph(
        "Memory and disk (left), CPU in percent of one vCPU (right)",
        [
            label(variant.metric_memory_utilization(statistic="Maximum"), "memory, fullest"),
            label(variant.metric_disk_utilization(statistic="Maximum"), "disk, fullest"),
        ],
        [label(variant.metric_cpu_utilization(), "CPU, mean")],
        marks=marks(lines.get("Memory"), text="memory alarm") + marks(lines.get("Disk"), text="disk alarm"),
    )


def _instances(variant: EndpointVariant) -> cloudwatch.GraphWidget:
    lines = limits(functools.partial(_limit, variant, "minimum"), functools.partial(_limit, variant, "maximum"))
    if variant.is_async:
        backlog, per_instance = variant.metric_backlog_size(), variant.metric_backlog_size_per_instance()
        count: cloudwatch.IMetric = cloudwatch.MathExpression(
            expression="backlog / perInstance",
            using_metrics={"backlog": backlog, "perInstance": per_instance},
            label="instances, while requests wait",
            period=Duration.minutes(1),
        )
        return graph("Instances that answer", [count], marks=lines)
    return graph("Instances that answer", [variant.metric_instance_count()], marks=lines)


def _loading(variant: EndpointVariant, lines: Mapping[str, float]) -> list[Widgets]:
    """The rows of a multi-model endpoint."""
    waits = [
        scaled(variant.metric_model_loading_wait_time(statistic="Maximum"), PER_SECOND, "wait, longest"),
        scaled(variant.metric_model_downloading_time(), PER_SECOND, "download, mean"),
        scaled(variant.metric_model_loading_time(), PER_SECOND, "load, mean"),
        scaled(variant.metric_model_unloading_time(), PER_SECOND, "unload, mean"),
    ]
    unloads = label(variant.metric_model_unloading_time(statistic="SampleCount"), "unloads")
    return [
        [
            graph("Loaded archives", [label(variant.metric_loaded_model_count(), "per instance")], [unloads]),
            graph(
                "Requests that find their archive loaded, percent",
                [scaled(variant.metric_model_cache_hit(), PER_PERCENT, "cache hits")],
                marks=marks(lines.get("CacheMisses"), PER_PERCENT),
                maximum=100,
            ),
            graph("Loading, s", waits, marks=marks(lines.get("LoadingWait"), PER_SECOND)),
        ]
    ]


def _of_gpus(
    what: str, metric: Callable[..., cloudwatch.Metric], variant: EndpointVariant, line: float | None
) -> cloudwatch.GraphWidget:
    platforms = [model.platform for model in variant.variant.models]
    mean, highest = metric(statistic="Average"), metric(statistic="Maximum")
    if len(platforms) == 1:
        gpus = platforms[0].gpu_count
        shown = [scaled(mean, gpus, "mean"), scaled(highest, gpus, "highest")]
        return graph(f"{what}, percent, of each", shown, marks=marks(line, gpus))
    shown = [
        scaled(of_instance_type(found, each.instance_type), each.gpu_count, f"{each.instance_type}, {word}", f"_{at}")
        for at, each in enumerate(platforms)
        for found, word in ((mean, "mean"), (highest, "highest"))
    ]
    return graph(f"{what}, percent, of each", shown, marks=marks(line))


def _limit(variant: EndpointVariant, which: str) -> float:
    """A limit of the instance count, which may be scaled after the dashboard is made."""
    scaled_count = variant.scalable_instance_count
    if scaled_count is None:
        return variant.variant.initial_instance_count
    return scaled_count.min_capacity if which == "minimum" else scaled_count.max_capacity
