"""How an update moves the requests to the new instances: in steps, with waits in which alarms are watched.

Sources: the shapes below `DeploymentConfig` in botocore's service model `sagemaker` 2017-07-24, and the pages
"Auto-Rollback Configuration and Monitoring", "Use canary traffic shifting", "Use linear traffic shifting" and "Use
rolling deployments" of SageMaker's developer guide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Waits

__all__ = ["Alarms", "RolledBackError", "check_alarms", "moves_stepwise", "shift"]

Alarms = Callable[[Collection[str]], Mapping[str, str]]
"""The states of alarms by their names."""

_AT_ONCE: Final = "ALL_AT_ONCE"

_WATCH_SECONDS: Final = 10.0
"""The time between two looks at the alarms. AWS does not document it."""


class RolledBackError(LocalError):
    """An alarm stopped an update, or the update took too long: the old instances serve again."""


def check_alarms(deployment: Mapping[str, Any], alarms: Alarms) -> None:
    """Reject an update while one of its alarms is in ALARM.

    Raises:
        RolledBackError: there is such an alarm.
    """
    names = [each["AlarmName"] for each in (deployment.get("AutoRollbackConfiguration") or {}).get("Alarms") or ()]
    states = alarms(names) if names else {}
    if gone_off := sorted(name for name, state in states.items() if state == "ALARM"):
        raise RolledBackError(f"the update was rolled back, because the alarm {', '.join(gone_off)} is in ALARM")


def moves_stepwise(deployment: Mapping[str, Any]) -> bool:
    """Whether requests move in more than one step: a rolling update, a canary or a linear shift."""
    routing = (deployment.get("BlueGreenUpdatePolicy") or {}).get("TrafficRoutingConfiguration") or {}
    return bool(deployment.get("RollingUpdatePolicy")) or routing.get("Type", _AT_ONCE) != _AT_ONCE


def shift(deployment: Mapping[str, Any], instances: int, move: Callable[[float], None], alarms: Alarms) -> Waits:
    """Move the requests step by step, and watch the alarms meanwhile.

    Args:
        deployment: a DeploymentConfig.
        instances: the instances of all production variants.
        move: sends a share of the requests to the new instances.
        alarms: reads the alarms.

    Raises:
        RolledBackError: an alarm is in ALARM, or the update takes longer than it may.
    """
    blue_green, rolling = deployment.get("BlueGreenUpdatePolicy") or {}, deployment.get("RollingUpdatePolicy")
    routing = rolling or blue_green.get("TrafficRoutingConfiguration") or {}
    wait = float(routing.get("WaitIntervalInSeconds", 0))
    last = wait if rolling else float(blue_green.get("TerminationWaitInSeconds", 0))
    limit = float((rolling or blue_green).get("MaximumExecutionTimeoutInSeconds", "inf"))
    passed = 0.0
    for share in _shares(rolling, routing, instances):
        move(share)
        left = last if share == 1 else wait
        while left > 0:
            some = min(_WATCH_SECONDS, left)
            yield some
            left, passed = left - some, passed + some
            check_alarms(deployment, alarms)
            if passed > limit:
                raise RolledBackError(f"the update was rolled back, because it took more than {limit:g} seconds")


def _shares(rolling: Mapping[str, Any] | None, routing: Mapping[str, Any], instances: int) -> list[float]:
    """The shares of the requests that go to the new instances, one after the other.

    A size in percent is not rounded to whole instances, because AWS does not document how it does that.
    """
    if rolling is None and routing.get("Type", _AT_ONCE) == _AT_ONCE:
        return [1.0]
    size = rolling["MaximumBatchSize"] if rolling else routing.get("CanarySize") or routing["LinearStepSize"]
    whole = 100 if size["Type"] == "CAPACITY_PERCENT" else instances
    is_canary = rolling is None and routing["Type"] == "CANARY"
    steps = [size["Value"]] if is_canary else range(size["Value"], whole, size["Value"])
    return [step / whole for step in steps if step < whole] + [1.0]
