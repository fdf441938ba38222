"""The CloudWatch metrics of endpoints: collected here, and published to the local CloudWatch under SageMaker's names.

Source of names, units and dimensions: SageMaker's developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch".
Of most metrics, a datum is the sum, the number and the extremes of some seconds, from which no percentile can be
computed. Of the latency, the distribution is published, because alarms look at a percentile of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["EndpointMetrics", "Record"]

Record = Callable[[str, float], None]
"""Gets the name and the value of one metric of one variant; times are in seconds."""

_INVOCATIONS: Final = "AWS/SageMaker"
_INSTANCES: Final = "/aws/sagemaker/Endpoints"
_TIMES: Final = frozenset(
    {
        "ModelDownloadingTime",
        "ModelLatency",
        "ModelLoadingTime",
        "ModelLoadingWaitTime",
        "ModelUnloadingTime",
        "OverheadLatency",
    }
)
_OF_THE_ENDPOINT: Final = frozenset(
    {
        "ApproximateAgeOfOldestRequest",
        "ApproximateBacklogSize",
        "ApproximateBacklogSizePerInstance",
        "HasBacklogWithoutCapacity",
    }
)
_OF_INSTANCES: Final = frozenset({"LoadedModelCount"})
_DISTRIBUTIONS: Final = frozenset({"ModelLatency"})
_MAX_VALUES: Final = 150  # of a datum (`Values` of PutMetricData)
_PER_REQUEST: Final = 500  # PutMetricData takes 1,000 metrics

_Key = tuple[tuple[tuple[str, str], ...], str]
"""The dimensions of a metric, by name and value, and its name."""


class EndpointMetrics:
    """Collects what endpoints record, until it is published.

    Args:
        client: makes a boto3 CloudWatch client.
        now: returns the machine's time, in seconds since 1970, which callers of CloudWatch ask for.
        instances: returns the number of instances of a variant, by the names of its endpoint and its own.

    Attributes:
        before_publishing: records what has a value at each moment.
    """

    def __init__(
        self, client: Callable[[], Any], now: Callable[[], float], instances: Callable[[str, str], int]
    ) -> None:
        self.before_publishing: Callable[[], None] = lambda: None
        self._client = client
        self._instances = instances
        self._now = now
        self._since = now()
        self._collected: dict[_Key, list[float]] = {}
        self._lock = threading.Lock()

    def record(
        self,
        endpoint: str,
        variant: str,
        name: str,
        value: float,
        instance_type: str = "",
        *,
        configuration: str = "",
    ) -> None:
        """Keep a value until it is published.

        Args:
            endpoint: the endpoint's name.
            variant: the variant's name; ignored for the metrics of a queue, which have no such dimension.
            name: the metric's name.
            value: its value; a time is in seconds.
            instance_type: the type of a variant with instance pools.
            configuration: the name of the endpoint configuration.

        SageMaker publishes a value with and without the last two dimensions. Here it is published once, with them,
        because moto compares only the dimensions of a query, and so finds it in both cases.
        """
        if name == "InvocationsPerInstance":  # "1/numberOfInstances … on each request"
            value /= max(self._instances(endpoint, variant), 1)
        dimensions = [("EndpointName", endpoint)]
        if name not in _OF_THE_ENDPOINT:
            dimensions.append(("VariantName", variant))
        if instance_type:
            dimensions.append(("InstanceType", instance_type))
        if configuration:
            dimensions.append(("EndpointConfigName", configuration))
        self._keep(tuple(dimensions), name, value)

    def record_component(self, component: str, name: str, value: float) -> None:
        """Keep a value of an inference component until it is published; see `record`."""
        self._keep((("InferenceComponentName", component),), name, value)

    def _keep(self, dimensions: tuple[tuple[str, str], ...], name: str, value: float) -> None:
        value = value * 1e6 if name in _TIMES else value
        with self._lock:
            self._collected.setdefault((dimensions, name), []).append(value)

    def publish(self) -> None:
        """Publish what was recorded since the last time."""
        self.before_publishing()
        with self._lock:
            collected, self._collected = self._collected, {}
            since, self._since = self._since, self._now()
        time = datetime.fromtimestamp((since + self._since) / 2, UTC)  # within one period, whatever is rounded
        for namespace in (_INVOCATIONS, _INSTANCES):
            data = [
                {**_datum(key, values), "Timestamp": time}
                for key, values in collected.items()
                if (key[1] in _OF_INSTANCES) == (namespace == _INSTANCES)
            ]
            for start in range(0, len(data), _PER_REQUEST):
                self._client().put_metric_data(Namespace=namespace, MetricData=data[start : start + _PER_REQUEST])


def _datum(key: _Key, values: list[float]) -> dict[str, Any]:
    dimensions, name = key
    datum: dict[str, Any] = {
        "MetricName": name,
        "Dimensions": [{"Name": dimension, "Value": value} for dimension, value in dimensions],
        "Unit": "Microseconds" if name in _TIMES else "None",
    }
    if name in _DISTRIBUTIONS:
        groups = _groups(sorted(values))
        return {**datum, "Values": [sum(each) / len(each) for each in groups], "Counts": [len(each) for each in groups]}
    extremes = {"Minimum": min(values), "Maximum": max(values)}
    return {**datum, "StatisticValues": {"Sum": sum(values), "SampleCount": len(values), **extremes}}


def _groups(values: list[float]) -> list[list[float]]:
    """At most `_MAX_VALUES` groups, whose means have the sum, the number and the extremes of all values."""
    inner, most = values[1:-1], _MAX_VALUES - 2
    number = min(most, len(inner))
    middle = [inner[len(inner) * n // number : len(inner) * (n + 1) // number] for n in range(number)]
    return [values[:1], *middle, *([values[-1:]] if len(values) > 1 else [])]
