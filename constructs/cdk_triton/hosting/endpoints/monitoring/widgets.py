"""The graphs on the dashboards of variants and of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jsii
from aws_cdk import Duration, IStableNumberProducer, Lazy
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.hosting.endpoints.monitoring.alarms import Widgets
from cdk_triton.hosting.endpoints.variants.metrics import PER_MILLISECOND, InvocationMetrics

__all__ = ["COLUMNS", "errors", "graph", "head", "label", "latency", "limits", "marks", "scaled"]

COLUMNS = 24
WIDTH = 8
HEIGHT = 6


def head(title: str, alarms: Mapping[str, cloudwatch.Alarm]) -> list[Widgets]:
    """The first rows of a section: its title, and the states of its alarms if it has any."""
    rows: list[Widgets] = [[cloudwatch.TextWidget(markdown=f"## {title}", width=COLUMNS, height=1)]]
    if alarms:
        rows.append([cloudwatch.AlarmStatusWidget(alarms=list(alarms.values()), width=COLUMNS, height=3)])
    return rows


def latency(
    metrics: InvocationMetrics, lines: Mapping[str, float], *, is_async: bool = False
) -> cloudwatch.GraphWidget:
    """The model's latency, and SageMaker's overhead if it is published."""
    percentiles = [
        scaled(metrics.metric_model_latency(statistic=each), PER_MILLISECOND, f"model {each}")
        for each in ("p50", "p90", "p99")
    ]
    if not is_async:
        percentiles.append(scaled(metrics.metric_overhead_latency(), PER_MILLISECOND, "overhead, mean"))
    return graph("Latency, ms", percentiles, marks=marks(lines.get("ModelLatency"), PER_MILLISECOND))


def errors(metrics: InvocationMetrics, *, is_async: bool = False) -> cloudwatch.GraphWidget:
    """The errors by class."""
    shown = [
        label(metrics.metric_invocation_4xx_errors(), "4xx"),
        label(metrics.metric_invocation_5xx_errors(), "5xx"),
    ]
    if not is_async:
        shown.append(label(metrics.metric_invocation_model_errors(), "not 2xx in the container"))
    return graph("Errors", shown)


def limits(least: Callable[[], float], most: Callable[[], float]) -> list[cloudwatch.HorizontalAnnotation]:
    """The lines of two limits that are final only when the app is complete."""
    return [
        cloudwatch.HorizontalAnnotation(value=Lazy.number(_LazyNumber(compute)), label=name)
        for name, compute in (("minimum", least), ("maximum", most))
    ]


def graph(
    title: str,
    left: list[cloudwatch.IMetric],
    right: list[cloudwatch.IMetric] | None = None,
    *,
    marks: list[cloudwatch.HorizontalAnnotation] | None = None,
    maximum: float | None = None,
) -> cloudwatch.GraphWidget:
    """A graph of a third of the dashboard's width."""
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


def label(metric: cloudwatch.Metric, text: str) -> cloudwatch.IMetric:
    """A metric with another label."""
    return metric.with_(label=text)


def scaled(metric: cloudwatch.Metric, unit: float, text: str, suffix: str = "") -> cloudwatch.IMetric:
    """A metric in another unit."""
    # Within a widget, an identifier may stand for one metric only.
    identifier = f"m_{metric.metric_name}_{metric.statistic}{suffix}"
    return cloudwatch.MathExpression(
        expression=f"{identifier} / {unit}",
        using_metrics={identifier: metric},
        label=text,
        period=Duration.minutes(1),
    )


def marks(line: float | None, unit: float = 1, text: str = "alarm") -> list[cloudwatch.HorizontalAnnotation]:
    """The line of an alarm, or nothing without a threshold."""
    return [] if line is None else [cloudwatch.HorizontalAnnotation(value=line / unit, label=text)]


@jsii.implements(IStableNumberProducer)
class _LazyNumber:
    """A number that is computed when the app is complete."""

    def __init__(self, compute: Callable[[], float]) -> None:
        self._compute = compute

    @jsii.member(jsii_name="produce")
    def produce(self) -> float:
        return self._compute()
