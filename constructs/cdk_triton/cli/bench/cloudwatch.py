"""CloudWatch's metrics of an endpoint, for the minutes of a load.

Names, namespaces and dimensions: SageMaker's developer guide, "Amazon SageMaker AI metrics in Amazon CloudWatch".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cdk_triton.cli.artifacts.aws import Aws

__all__ = ["LEAST_MINUTES", "LOAD_PARTS", "LoadPart", "awaited_load_parts", "gpu_utilization", "load_parts"]

LEAST_MINUTES = 3
"""Full minutes at the knee, at least."""
_MINUTE = 60
_PATIENCE_SECONDS = 300
_POLL_SECONDS = 15.0
_LOADING = "ModelLoadingTime"
LOAD_PARTS = ("ModelLoadingWaitTime", "ModelDownloadingTime", _LOADING, "ModelUnloadingTime")
"""The parts of a cold load of a multi-model endpoint, in microseconds. The first contains the others."""


@dataclass(frozen=True)
class LoadPart:
    """One part of cold loads.

    Attributes:
        name: the metric.
        count: how often the metric was measured.
        seconds: the mean of the metric, in seconds.
    """

    name: str
    count: int
    seconds: float


def gpu_utilization(
    aws: Aws,
    endpoint: str,
    variant: str,
    period: tuple[float, float],
    gpus: int,
    *,
    wait: Callable[[float], None] = time.sleep,
) -> float | None:
    """The mean of the full minutes of a period, in percent of one GPU; None if CloudWatch has too few of them.

    SageMaker publishes the sum over the GPUs of an instance, so it is divided by their number. The values come some
    minutes later.

    Args:
        aws: the account.
        endpoint: the endpoint's name.
        variant: the name of the variant.
        period: begin and end, in seconds since 1970.
        gpus: the number of GPUs of an instance.
        wait: a function that waits for some seconds.
    """
    first = -(-period[0] // _MINUTE) * _MINUTE
    last = period[1] // _MINUTE * _MINUTE
    wanted = int((last - first) // _MINUTE)
    values: Sequence[float] = ()
    for _ in range(int(_PATIENCE_SECONDS / _POLL_SECONDS)):
        points = _statistics(aws, "/aws/sagemaker/Endpoints", endpoint, variant, "GPUUtilization", (first, last))
        values = [each["Average"] for each in points]
        if len(values) >= wanted:
            break
        wait(_POLL_SECONDS)
    if len(values) < LEAST_MINUTES:
        return None
    return sum(values) / len(values) / gpus


def load_parts(aws: Aws, endpoint: str, variant: str, period: tuple[float, float]) -> list[LoadPart]:
    """The parts of the cold loads of a period, as far as CloudWatch has them."""
    found = []
    for name in LOAD_PARTS:
        points = _statistics(aws, "AWS/SageMaker", endpoint, variant, name, (period[0], period[1] + _MINUTE))
        count = sum(each["SampleCount"] for each in points)
        if count:
            seconds = sum(each["Average"] * each["SampleCount"] for each in points) / count / 1e6
            found.append(LoadPart(name, int(count), seconds))
    return found


def awaited_load_parts(
    aws: Aws,
    endpoint: str,
    variant: str,
    began: float,
    count: int,
    *,
    pause: float = _POLL_SECONDS,
    wait: Callable[[float], None] = time.sleep,
) -> list[LoadPart]:
    """The parts of cold loads that began then, which CloudWatch has some minutes later.

    Args:
        aws: the account.
        endpoint: the endpoint's name.
        variant: the name of the variant.
        began: the beginning of the first load, in seconds since 1970.
        count: the number of loads to wait for. After some minutes, the loads that CloudWatch has by then are returned.
        pause: seconds between two polls.
        wait: a function that waits for some seconds.
    """
    ended = time.time()
    found: list[LoadPart] = []
    for _ in range(int(_PATIENCE_SECONDS / _POLL_SECONDS)):
        found = load_parts(aws, endpoint, variant, (began - began % _MINUTE, ended))
        if any(each.name == _LOADING and each.count >= count for each in found):
            break
        wait(pause)
    return found


def _statistics(
    aws: Aws, namespace: str, endpoint: str, variant: str, name: str, period: tuple[float, float]
) -> Sequence[Mapping[str, Any]]:
    answer = aws.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}],
        StartTime=datetime.fromtimestamp(period[0], UTC),
        EndTime=datetime.fromtimestamp(period[1], UTC),
        Period=_MINUTE,
        Statistics=["Average", "SampleCount"],
    )
    points: Sequence[Mapping[str, Any]] = answer["Datapoints"]
    return points
