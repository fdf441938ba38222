"""The CloudWatch metrics of endpoints: collected here, and published to the local CloudWatch under SageMaker's names.

Source of names, units and dimensions: SageMaker's developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch".
Percentiles cannot be computed from what is published: a datum is the sum, the number and the extremes of some seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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
_PER_REQUEST: Final = 500  # PutMetricData takes 1,000 metrics
_PERIOD_SECONDS: Final = 5.0

_Key = tuple[tuple[tuple[str, str], ...], str]
"""The dimensions of a metric, by name and value, and its name."""


class EndpointMetrics:
    """Collects what endpoints record, and publishes it every few seconds.

    Args:
        client: makes a boto3 CloudWatch client.
        log: gets a line where something could not be published.
    """

    def __init__(self, client: Callable[[], Any], log: Callable[[str], None]) -> None:
        self._client = client
        self._log = log
        self._collected: dict[_Key, list[float]] = {}  # sum, number, minimum, maximum
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="endpoint metrics", daemon=True)
        self._thread.start()

    def record(self, endpoint: str, variant: str, name: str, value: float, instance_type: str = "") -> None:
        """Keep a value until it is published.

        Args:
            endpoint: the endpoint's name.
            variant: the variant's name; ignored for the metrics of a queue, which have no such dimension.
            name: the metric's name.
            value: its value; a time is in seconds.
            instance_type: the type of a variant with instance pools. SageMaker publishes such a value with and without
                this dimension. Here it is published once, with the dimension, because moto compares only the dimensions
                of a query, and so finds it in both cases.
        """
        dimensions = [("EndpointName", endpoint)]
        if name not in _OF_THE_ENDPOINT:
            dimensions.append(("VariantName", variant))
        if instance_type:
            dimensions.append(("InstanceType", instance_type))
        self._keep(tuple(dimensions), name, value)

    def record_component(self, component: str, name: str, value: float) -> None:
        """Keep a value of an inference component until it is published; see `record`."""
        self._keep((("InferenceComponentName", component),), name, value)

    def _keep(self, dimensions: tuple[tuple[str, str], ...], name: str, value: float) -> None:
        value = value * 1e6 if name in _TIMES else value
        with self._lock:
            found = self._collected.get((dimensions, name))
            if found is None:
                self._collected[dimensions, name] = [value, 1, value, value]
            else:
                found[:] = [found[0] + value, found[1] + 1, min(found[2], value), max(found[3], value)]

    def publish(self) -> None:
        """Publish what was recorded since the last time."""
        with self._lock:
            collected, self._collected = self._collected, {}
        for namespace in (_INVOCATIONS, _INSTANCES):
            data = [
                _datum(key, values)
                for key, values in collected.items()
                if (key[1] in _OF_INSTANCES) == (namespace == _INSTANCES)
            ]
            for start in range(0, len(data), _PER_REQUEST):
                self._client().put_metric_data(Namespace=namespace, MetricData=data[start : start + _PER_REQUEST])

    def close(self) -> None:
        """Stop publishing."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_PERIOD_SECONDS):
            try:
                self.publish()
            except Exception as error:  # endpoints go on without
                self._log(f"metrics of endpoints were not published: {error}")


def _datum(key: _Key, values: list[float]) -> dict[str, Any]:
    dimensions, name = key
    total, number, least, most = values
    return {
        "MetricName": name,
        "Dimensions": [{"Name": dimension, "Value": value} for dimension, value in dimensions],
        "StatisticValues": {"Sum": total, "SampleCount": number, "Minimum": least, "Maximum": most},
        "Unit": "Microseconds" if name in _TIMES else "None",
    }
