"""Watches metrics: publishes those of endpoints, evaluates alarms, and scales."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from cdk_triton_local.clock import Clock, Waits
from cdk_triton_local.process import CLOUDWATCH, ITSELF
from cdk_triton_local.services.alarms import Alarms
from cdk_triton_local.services.metric_math import Series
from cdk_triton_local.services.metric_values import Datum, MetricValues
from cdk_triton_local.services.scaling import Scaling, Target

__all__ = ["Monitoring"]

_SECONDS: Final = 10.0  # the shortest period of an alarm
_MINUTE: Final = 60


class Monitoring:
    """Everything that happens because of a metric.

    Args:
        clock: the clock.
        client: makes a boto3 client of a service for a principal.
        publish: publishes the metrics of endpoints.
        read: see `MetricValues`.
        targets: reads the scalable targets.
        log: gets a line for each change.
    """

    def __init__(
        self,
        clock: Clock,
        client: Callable[[str, str], Any],
        publish: Callable[[], None],
        read: Callable[[float], Sequence[Datum]],
        targets: Callable[[], Sequence[Target]],
        log: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._client = client
        self._publish = publish
        self._log = log
        self._values = MetricValues(read, clock)
        self._alarms = Alarms(lambda: client("cloudwatch", ITSELF), self._values, lambda: clock.now, self._act, log)
        self._scaling = Scaling(targets, self._values, clock, log)

    def watch(self) -> Waits:
        """Watch for ever."""
        while True:
            yield (math.floor(self._clock.now / _SECONDS) + 1) * _SECONDS - self._clock.now
            is_minute = round(self._clock.now) % _MINUTE == 0
            try:
                self._publish()
                self._values.refresh()
                self._alarms.evaluate(only_short=not is_minute)
                if is_minute:
                    self._scaling.evaluate()
            except Exception as error:  # the next time may succeed
                self._log(f"metrics were not watched: {error}")

    def alarm_states(self, role: str, names: Collection[str]) -> Mapping[str, str]:
        """The states of alarms, read with a role."""
        found = self._client("cloudwatch", role).describe_alarms(AlarmNames=list(names))["MetricAlarms"]
        return {each["AlarmName"]: each["StateValue"] for each in found}

    def _act(self, action: str, alarm: Mapping[str, Any], series: Series) -> None:
        """Carry out an action of an alarm."""
        if ":sns:" in action:
            text = {"AlarmName": alarm["AlarmName"], "NewStateValue": alarm["StateValue"]}
            self._client("sns", CLOUDWATCH).publish(TopicArn=action, Message=json.dumps(text))
        if ":autoscaling:" in action:
            self._scaling.step(action, alarm, series)
