"""Corrects the alarms of moto 5.2.5, and reads the metrics that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from cdk_triton_local.moto_state.patching import replace_method
from cdk_triton_local.services.metric_values import Datum

__all__ = ["correct_alarms", "metric_data"]


def correct_alarms() -> None:
    """Correct moto; a second call changes nothing."""
    from moto.cloudwatch.models import CloudWatchBackend

    replace_method(CloudWatchBackend, "put_metric_alarm", _put_alarm)


def metric_data(account: str, region: str, known: int) -> Sequence[Datum]:
    """What PutMetricData has published, without the first `known` data."""
    from moto.cloudwatch.models import cloudwatch_backends

    return [_datum(each) for each in cloudwatch_backends[account][region].metric_data[known:]]


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


def _datum(found: Any) -> Datum:
    time = found.timestamp if found.timestamp.tzinfo else found.timestamp.replace(tzinfo=UTC)
    is_single = hasattr(found, "value")
    return Datum(
        found.namespace,
        found.name,
        frozenset((each.name, each.value) for each in found.dimensions),
        time.timestamp(),
        found.value if is_single else found.sum,
        1.0 if is_single else found.sample_count,
        found.value if is_single else found.min,
        found.value if is_single else found.max,
    )
