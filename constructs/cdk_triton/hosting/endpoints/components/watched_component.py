"""An inference component, as alarms and dashboard show it.

SageMaker publishes the utilization of a component as a percentage of what its copies reserve, from 0 to 100 whatever
the number of GPUs. It publishes no metric of disks ("SageMaker AI inference component metrics" in its developer guide).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_triton.hosting.endpoints.monitoring.alarms import RULES, AlarmRule, AlarmThresholds, Watched, Widgets, in_units
from cdk_triton.hosting.endpoints.monitoring.log_retention import component_log_group_name
from cdk_triton.hosting.endpoints.monitoring.monitoring import EndpointMonitoring
from cdk_triton.hosting.endpoints.monitoring.widgets import errors, graph, head, label, latency, limits, marks
from cdk_triton.hosting.endpoints.variants.metrics import ComponentMetrics

if TYPE_CHECKING:
    from cdk_triton.hosting.endpoints.components.component import TritonComponent

__all__ = ["COMPONENT_RULES", "WatchedComponent", "watch_component"]

_OF_ENDPOINTS: Final = {rule.name: rule for rule in RULES}

COMPONENT_RULES: Final = (
    _OF_ENDPOINTS["ServerErrors"],
    _OF_ENDPOINTS["ModelErrors"],
    _OF_ENDPOINTS["ClientErrors"],
    replace(
        _OF_ENDPOINTS["ModelLatency"],
        first_step="If the GPUs are busy, add copies; otherwise check the CPU, the batching's queue delay and the "
        "number of model instances",
    ),
    replace(
        _OF_ENDPOINTS["GpuUtilization"],
        metric=ComponentMetrics.metric_gpu_utilization,
        of_each_gpu=False,
        first_step="If the copies are at their maximum, raise max_capacity; otherwise lower the scaling's target",
    ),
    replace(
        _OF_ENDPOINTS["GpuMemory"],
        metric=ComponentMetrics.metric_gpu_memory_utilization,
        of_each_gpu=False,
        meaning="more than {} of the memory of a copy's GPUs is used",
        first_step="Use fewer model instances, a smaller max_batch_size, or more accelerators for each copy",
    ),
    replace(
        _OF_ENDPOINTS["Memory"],
        metric=ComponentMetrics.metric_memory_utilization,
        meaning="more than {} of the memory that a copy reserves is used",
        first_step="If memory use has grown since the last deployment, a Python model leaks memory; otherwise reserve "
        "more memory",
    ),
    AlarmRule(
        name="NoCapacity",
        metric=ComponentMetrics.metric_no_capacity_invocation_failures,
        statistic="Sum",
        threshold="no_capacity_requests",
        meaning="in each period of five minutes, more than {} requests found no copy",
        first_step="If no copy starts, read the component's log, and check that max_instance_count leaves free GPUs",
        minutes=5,
        breaching=4,
        evaluated=4,
    ),
)
"""The alarms of a component. Requests without a copy are a fault only if they continue: from zero, the first copy took
nine and a half minutes, including the start of an instance. These minutes touch three periods of five minutes, so the
alarm needs four."""


class WatchedComponent(Watched):
    """A component.

    Args:
        component: the component.
    """

    kind = "component"
    rules = COMPONENT_RULES

    def __init__(self, component: TritonComponent) -> None:
        self.name = component.node.id
        self.construct = component
        self._component = component

    def limit(self, rule: AlarmRule, thresholds: AlarmThresholds) -> float | None:
        """See `Watched`."""
        return in_units(rule, thresholds)

    def metric(self, rule: AlarmRule) -> cloudwatch.IMetric:
        """See `Watched`."""
        return rule.metric(self._component, statistic=rule.statistic, period=Duration.minutes(rule.minutes))

    def section(self, alarms: Mapping[str, cloudwatch.Alarm], lines: Mapping[str, float]) -> list[Widgets]:
        """See `Watched`."""
        of = self._component
        platform, gpus = of.model.platform, of.requirements.accelerators
        unit = "GPU" if gpus == 1 else "GPUs"
        title = f"Component {self.name}: {platform.label} on {platform.instance_type}, {gpus} {unit} for each copy"
        return [
            *head(title, alarms),
            [
                graph(
                    "Requests",
                    [label(of.metric_invocations(), "requests")],
                    [label(of.metric_concurrent_requests(), "at a time")],
                ),
                latency(of, lines),
                errors(of),
            ],
            [
                graph(
                    "GPU, percent of what the copies reserve",
                    [label(of.metric_gpu_utilization(), "mean")],
                    marks=marks(lines.get("GpuUtilization")),
                ),
                graph(
                    "GPU memory, percent of what the copies reserve",
                    [label(of.metric_gpu_memory_utilization(statistic="Maximum"), "fullest")],
                    marks=marks(lines.get("GpuMemory")),
                ),
                graph(
                    "Memory and CPU, percent of what the copies reserve",
                    [
                        label(of.metric_memory_utilization(statistic="Maximum"), "memory, fullest"),
                        label(of.metric_cpu_utilization(), "CPU, mean"),
                    ],
                    marks=marks(lines.get("Memory"), text="memory alarm"),
                ),
            ],
            [
                graph("Copies that answer", [_copies(of)], marks=limits(lambda: of.min_copies, lambda: of.max_copies)),
                graph("Requests per copy", [label(of.metric_invocations_per_copy(), "requests")]),
                graph(
                    "Requests without a copy",
                    [label(of.metric_no_capacity_invocation_failures(), "requests")],
                ),
            ],
        ]


def _copies(of: TritonComponent) -> cloudwatch.IMetric:
    """The number of copies that answered, while there are requests; SageMaker does not publish it."""
    return cloudwatch.MathExpression(
        expression="invocations / perCopy",
        using_metrics={"invocations": of.metric_invocations(), "perCopy": of.metric_invocations_per_copy()},
        label="copies",
        period=Duration.minutes(1),
    )


def watch_component(monitoring: EndpointMonitoring, component: TritonComponent) -> None:
    """Add alarms, graphs and the retention of logs of a component to the monitoring of its endpoint."""
    monitoring._watch(WatchedComponent(component))
    (name,) = component.metric_dimensions.values()
    monitoring._limit_log_retention(component, "LogRetention", component_log_group_name(name))
