"""Corrects CloudWatch of moto 5.2.5, and reads the metrics that it keeps."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from cdk_triton_local.moto_state.patching import replace_method
from cdk_triton_local.services.metric_values import Datum

__all__ = ["correct_cloudwatch", "new_metric_data"]


def correct_cloudwatch() -> None:
    """Correct moto; a second call changes nothing."""
    from moto.cloudwatch.models import CloudWatchBackend

    replace_method(CloudWatchBackend, "put_metric_alarm", _put_alarm)
    replace_method(CloudWatchBackend, "put_metric_data", _put_data)


def new_metric_data(account: str, region: str, oldest: float) -> Sequence[Datum]:
    """What PutMetricData has published since the last call; moto forgets what is older than a time.

    Other threads may publish meanwhile: they only add at the end.
    """
    from moto.cloudwatch.models import cloudwatch_backends

    backend = cloudwatch_backends[account][region]
    data, state = backend.metric_data, vars(backend)
    known = state.get("known_data", 0)
    new = [_datum(each) for each in data[known:]]
    known += len(new)
    old = next((number for number, each in enumerate(data[:known]) if _time(each) >= oldest), known)
    del data[:old]
    state["known_data"] = known - old
    return new


def _put_alarm(original: Any) -> Any:
    def put_metric_alarm(backend: Any, **alarm: Any) -> Any:
        """PutMetricAlarm: a new alarm is in INSUFFICIENT_DATA; "when you update an existing alarm, its state is left
        unchanged".
        """  # noqa: D205  one sentence
        before = backend.alarms.get(alarm["name"])
        after = original(backend, **alarm)
        after.state_value = "INSUFFICIENT_DATA" if before is None else before.state_value
        return after

    return put_metric_alarm


def _put_data(original: Any) -> Any:
    def put_metric_data(backend: Any, namespace: str, metric_data: Sequence[Mapping[str, Any]]) -> None:
        """PutMetricData: of `Values`, moto keeps an object for each value as often as it was counted."""
        for number, each in enumerate(metric_data, 1):
            backend._validate_parameters_put_metric_data(each, number)
        for each in metric_data:
            if each.get("Values"):
                backend.metric_data.append(_distribution(namespace, each))
            else:
                original(backend, namespace, [each])

    return put_metric_data


def _distribution(namespace: str, member: Mapping[str, Any]) -> Any:
    from moto.cloudwatch.models import MetricAggregatedDatum

    values = array("d", map(float, member["Values"]))
    counts = array("d", map(float, member.get("Counts") or [1.0] * len(values)))
    datum = MetricAggregatedDatum(
        namespace,
        member["MetricName"],
        min_stat=min(values),
        max_stat=max(values),
        sample_count=sum(counts),
        sum_stat=sum(value * count for value, count in zip(values, counts, strict=True)),
        dimensions=member.get("Dimensions") or [],
        timestamp=member.get("Timestamp"),
        unit=member.get("Unit"),
    )
    vars(datum).update(values=values, counts=counts)
    return datum


def _datum(found: Any) -> Datum:
    is_single = hasattr(found, "value")
    least, most = (found.value, found.value) if is_single else (found.min, found.max)
    number = 1.0 if is_single else found.sample_count
    # "Statistic sets … percentile statistics only if SampleCount is 1 or Min and Max are equal" (PutMetricData).
    known: tuple[Sequence[float], Sequence[float]] = ((most,), (number,)) if least == most else ((), ())
    return Datum(
        found.namespace,
        found.name,
        frozenset((each.name, each.value) for each in found.dimensions),
        _time(found),
        found.value if is_single else found.sum,
        number,
        least,
        most,
        getattr(found, "values", known[0]),
        getattr(found, "counts", known[1]),
    )


def _time(found: Any) -> float:
    time = found.timestamp if found.timestamp.tzinfo else found.timestamp.replace(tzinfo=UTC)
    return float(time.timestamp())
