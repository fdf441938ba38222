"""How SageMaker updates an endpoint to a new configuration: typed deployment policies.

Sources: the shapes below `DeploymentConfig` in the service model `sagemaker` 2017-07-24 of botocore 1.44.5, and the
pages "Deployment guardrails for updating models in production", "Auto-Rollback Configuration and Monitoring" and
"Exclusions" of SageMaker's developer guide. Without a policy, SageMaker starts new instances, sends
them all requests as soon as they answer, and ends the old ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from aws_cdk import Duration
from aws_cdk import aws_sagemaker as sagemaker

from cdk_triton._checked import checked
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.literals import MAX_WHOLE, allowed_whole, is_token, is_whole, literal_seconds
from cdk_triton.sagemaker.limits import (
    MAX_ROLLBACK_ALARMS,
    MAX_UPDATE_SECONDS,
    MAX_UPDATE_WAIT_SECONDS,
    MIN_UPDATE_SECONDS,
)

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["AllAtOnce", "Canary", "Capacity", "DeploymentPolicy", "Linear", "Rolling"]

MAX_STEP_PERCENT = 50
"""The bound of a canary, a linear step and a batch: at most half of a variant's instances (CanarySize, LinearStepSize,
MaximumBatchSize). The minimum is 10 % for a linear step, and 5 % for a batch."""


@dataclass(frozen=True)
class Capacity:
    """A part of each variant's instances, or of a component's copies: SageMaker's `CapacitySize`.

    Attributes:
        percent: a percentage of the instances or copies, 1 to 100.
        instances: a number of instances instead, at least 1; for an endpoint.
        copies: a number of copies instead, at least 1; for an inference component.

    Raises:
        ConfigurationError: none or several of the three are given, or a value is out of its range.
    """

    percent: int | None = None
    _: KW_ONLY
    instances: int | None = None
    copies: int | None = None

    def __post_init__(self) -> None:
        if [self.percent, self.instances, self.copies].count(None) != 2:
            raise ConfigurationError(f"{self!r} does not have exactly one value: give percent, instances or copies")
        values = (
            ("percent", self.percent, 100),
            ("instances", self.instances, MAX_WHOLE),
            ("copies", self.copies, MAX_WHOLE),
        )
        for name, value, most in values:
            if value is not None and not is_whole(value, 1, most):
                allowed = allowed_whole(value, 1) if most == MAX_WHOLE else f"a whole number, 1 to {most}"
                raise ConfigurationError(f"{name} of a Capacity is {quoted(value)}: use {allowed}")

    def __str__(self) -> str:
        if is_token(self.percent) or is_token(self._number):
            return "an unresolved size"
        if self.percent is not None:
            return f"{self.percent} %"
        one, several = ("instance", "instances") if self.copies is None else ("copy", "copies")
        return f"{self._number} {one if self._number == 1 else several}"

    @property
    def _number(self) -> int | None:
        """The number of instances or copies; None for a percentage."""
        return self.instances if self.copies is None else self.copies

    def _bounds(self, least_percent: int) -> tuple[int, float]:
        """The fewest and the most instances or copies of which this is between `least_percent` and a half.

        A percentage needs at least two, because a part of one instance is all or nothing.
        """
        if self._number is None or is_token(self._number):
            return 2, math.inf
        return 2 * self._number, 100 * self._number / least_percent

    def _rendered(self) -> sagemaker.CfnEndpoint.CapacitySizeProperty:
        if self.percent is not None:
            return sagemaker.CfnEndpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=self.percent)
        return sagemaker.CfnEndpoint.CapacitySizeProperty(type="INSTANCE_COUNT", value=self.instances or 0)


@dataclass(frozen=True, kw_only=True)
class DeploymentPolicy(ABC):
    """How SageMaker updates an endpoint: `AllAtOnce`, `Canary`, `Linear` or `Rolling`.

    SageMaker starts new instances with the new configuration and ends the old ones. If a new instance does not start,
    or one of the alarms goes off, all requests go back to the old instances.

    Attributes:
        alarms: at most 10 alarms that roll an update back. These alarms are created before the endpoint. So if one of
            them watches the endpoint, the endpoint needs a literal `endpoint_name`: with a generated name, the two
            would depend on each other. Add alarms on the endpoint's own metrics with `TritonEndpoint.roll_back_on`.
        maximum_time: how long the whole update may take, 600 to 28800 seconds. It must be longer than all waiting times
            together. None: SageMaker's default, which AWS does not document.
    """

    alarms: Sequence[cloudwatch.IAlarm] = ()
    maximum_time: Duration | None = None

    _least_percent: ClassVar[int] = 1
    """The smallest percentage of a step."""

    _is_for_one_variant: ClassVar[bool] = False
    """Whether SageMaker offers it to endpoints with one variant only ("Exclusions")."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alarms", tuple(self.alarms))
        self._check_alarms(self.alarms)
        self._check_seconds("maximum_time", self.maximum_time, MIN_UPDATE_SECONDS, MAX_UPDATE_SECONDS)

    def _check_alarms(self, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Reject alarms that SageMaker would never evaluate, or more than it accepts (AlarmList).

        Raises:
            ConfigurationError: the policy never waits, or there are too many alarms.
        """
        name = type(self).__name__
        if len(alarms) > MAX_ROLLBACK_ALARMS:
            raise ConfigurationError(
                f"{name} has {len(alarms)} alarms, but SageMaker watches at most {MAX_ROLLBACK_ALARMS}: keep the "
                "alarms that show a bad update"
            )
        if alarms and not self._watches:
            raise ConfigurationError(
                f"{name} has alarms but never waits, and SageMaker watches alarms only while an update waits: give "
                f"{name} a wait of some minutes"
            )

    @property
    def _parts(self) -> dict[str, Capacity]:
        """The capacities by the names of their attributes."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Capacity)}

    def _check_part(self, name: str, part: Capacity) -> None:
        least, percent = self._least_percent, part.percent
        if percent is not None and not is_token(percent) and not least <= percent <= MAX_STEP_PERCENT:
            raise ConfigurationError(
                f"{name} of {type(self).__name__} is {part}: SageMaker takes {least} to {MAX_STEP_PERCENT} % of the "
                "instances"
            )

    def _check_waits(self, **waits: tuple[Duration | None, float]) -> None:
        """Check the waiting times and whether their sum is shorter than `maximum_time`.

        Args:
            **waits: each waiting time with the least number of times that an update waits so long.
        """
        for name, (wait, _) in waits.items():
            self._check_seconds(name, wait, 0, MAX_UPDATE_WAIT_SECONDS)
        waiting = sum((literal_seconds(wait) or 0) * times for wait, times in waits.values())
        limit = literal_seconds(self.maximum_time)
        if limit is not None and waiting >= limit:
            raise ConfigurationError(
                f"maximum_time of {type(self).__name__} is {limit:g} seconds, but the waits take {waiting:g} seconds, "
                "so every update would time out and be rolled back: raise maximum_time, or shorten the waits"
            )

    def _check_seconds(self, name: str, duration: Duration | None, least: int, most: int) -> None:
        seconds = literal_seconds(duration)
        if seconds is not None and not (least <= seconds <= most and seconds == int(seconds)):
            raise ConfigurationError(
                f"{name} of {type(self).__name__} is {seconds:g} seconds: SageMaker takes whole seconds, {least} to "
                f"{most}"
            )

    @property
    @abstractmethod
    def _first_step(self) -> Capacity | None:
        """The part that takes requests first; None if all instances take them at once."""

    @abstractmethod
    def _watched_seconds(self, instances: float) -> float:
        """The longest time in which SageMaker evaluates the alarms, which is the sum of all waiting times.

        Args:
            instances: the instances of the largest variant.

        Returns:
            The seconds; infinity for an unresolved token.
        """

    @property
    def _watches(self) -> bool:
        return self._watched_seconds(1) > 0

    @abstractmethod
    def _rendered(
        self, rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty: ...


@dataclass(frozen=True, kw_only=True)
class _BlueGreen(DeploymentPolicy):
    """A policy that starts all new instances before it moves requests.

    You pay for old and new instances at the same time.

    Attributes:
        termination_wait: how long the old instances run after all requests have moved, while SageMaker watches the
            alarms, 0 to 3600 seconds. None: they end at once.
    """

    termination_wait: Duration | None = None

    def _blue_green(
        self,
        routing: sagemaker.CfnEndpoint.TrafficRoutingConfigProperty,
        rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None,
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        return sagemaker.CfnEndpoint.DeploymentConfigProperty(
            blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
                traffic_routing_configuration=routing,
                termination_wait_in_seconds=_whole_seconds(self.termination_wait),
                maximum_execution_timeout_in_seconds=_whole_seconds(self.maximum_time),
            ),
            auto_rollback_configuration=rollback,
        )


@checked
@dataclass(frozen=True, kw_only=True)
class AllAtOnce(_BlueGreen):
    """All requests move to the new instances in one step, as without a policy, but with alarms and a waiting time.

    Attributes:
        alarms: see `DeploymentPolicy`.
        termination_wait: how long the old instances run after all requests have moved, while SageMaker watches the
            alarms, 0 to 3600 seconds. None: they end at once.
        maximum_time: see `DeploymentPolicy`.

    Raises:
        ConfigurationError: a value is out of its range; there are alarms but no waiting time; or the waiting times add
            up to `maximum_time` or more.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_waits(termination_wait=(self.termination_wait, 1))

    @property
    def _first_step(self) -> None:
        return None

    def _watched_seconds(self, instances: float) -> float:
        return _waited(self.termination_wait)

    def _rendered(
        self, rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        """The API requires a waiting time although nothing waits."""
        routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(type="ALL_AT_ONCE", wait_interval_in_seconds=0)
        return self._blue_green(routing, rollback)


@checked
@dataclass(frozen=True, kw_only=True)
class Canary(_BlueGreen):
    """A small part of the new instances receives requests first, and the rest after a wait.

    Attributes:
        size: the part that receives requests first, at most 50 % of the instances.
        wait: how long SageMaker watches the alarms before the rest follows, 0 to 3600 seconds.
        alarms: see `DeploymentPolicy`.
        termination_wait: how long the old instances run after all requests have moved, while SageMaker watches the
            alarms, 0 to 3600 seconds. None: they end at once.
        maximum_time: see `DeploymentPolicy`.

    Raises:
        ConfigurationError: a value is out of its range; there are alarms but no waiting time; or the waiting times add
            up to `maximum_time` or more.
    """

    size: Capacity
    wait: Duration

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_part("size", self.size)
        self._check_waits(wait=(self.wait, 1), termination_wait=(self.termination_wait, 1))

    @property
    def _first_step(self) -> Capacity:
        return self.size

    def _watched_seconds(self, instances: float) -> float:
        return _waited(self.wait) + _waited(self.termination_wait)

    def _rendered(
        self, rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type="CANARY", canary_size=self.size._rendered(), wait_interval_in_seconds=_whole_seconds(self.wait)
        )
        return self._blue_green(routing, rollback)


@checked
@dataclass(frozen=True, kw_only=True)
class Linear(_BlueGreen):
    """The new instances start to receive requests in equal steps, with a wait after each step.

    Attributes:
        step: the size of one step, 10 to 50 % of the instances.
        wait: how long SageMaker watches the alarms between two steps, 0 to 3600 seconds.
        alarms: see `DeploymentPolicy`.
        termination_wait: how long the old instances run after the last step, while SageMaker watches the alarms, 0 to
            3600 seconds. None: they end at once.
        maximum_time: see `DeploymentPolicy`.

    Raises:
        ConfigurationError: a value is out of its range; there are alarms but no waiting time; or the waiting times add
            up to `maximum_time` or more.
    """

    step: Capacity
    wait: Duration

    _least_percent: ClassVar[int] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_part("step", self.step)
        self._check_waits(wait=(self.wait, _waits_between(self.step)), termination_wait=(self.termination_wait, 1))

    @property
    def _first_step(self) -> Capacity:
        return self.step

    def _watched_seconds(self, instances: float) -> float:
        return _waited(self.wait, _steps(self.step, instances)) + _waited(self.termination_wait)

    def _rendered(
        self, rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        routing = sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type="LINEAR", linear_step_size=self.step._rendered(), wait_interval_in_seconds=_whole_seconds(self.wait)
        )
        return self._blue_green(routing, rollback)


@checked
@dataclass(frozen=True, kw_only=True)
class Rolling(DeploymentPolicy):
    """SageMaker replaces instances batch by batch, so that an update needs few additional instances.

    An endpoint with this policy has only one variant. For an inference component, the batches are copies instead of
    instances.

    Attributes:
        batch: how many instances or copies SageMaker replaces at a time, 5 to 50 % of them.
        wait: how long SageMaker watches the alarms after each batch, 0 to 3600 seconds.
        rollback_batch: the size of a batch during a rollback. None: all at once, as in a blue/green rollback.
        alarms: see `DeploymentPolicy`.
        maximum_time: see `DeploymentPolicy`.

    Raises:
        ConfigurationError: a value is out of its range; there are alarms but no waiting time; or the waiting times add
            up to `maximum_time` or more.
    """

    batch: Capacity
    wait: Duration
    rollback_batch: Capacity | None = None

    _least_percent: ClassVar[int] = 5
    _is_for_one_variant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_part("batch", self.batch)
        self._check_waits(wait=(self.wait, _waits_between(self.batch)))

    @property
    def _first_step(self) -> Capacity:
        return self.batch

    def _watched_seconds(self, instances: float) -> float:
        return _waited(self.wait, _steps(self.batch, instances))

    def _rendered(
        self, rollback: sagemaker.CfnEndpoint.AutoRollbackConfigProperty | None
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        back = self.rollback_batch
        return sagemaker.CfnEndpoint.DeploymentConfigProperty(
            rolling_update_policy=sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
                maximum_batch_size=self.batch._rendered(),
                wait_interval_in_seconds=_whole_seconds(self.wait) or 0,
                rollback_maximum_batch_size=None if back is None else back._rendered(),
                maximum_execution_timeout_in_seconds=_whole_seconds(self.maximum_time),
            ),
            auto_rollback_configuration=rollback,
        )


def _steps(part: Capacity, instances: float) -> float:
    """The number of steps of this size in an update; infinity for an unresolved token."""
    whole, size = (instances, part._number) if part.percent is None else (100, part.percent)
    return math.inf if size is None or is_token(size) or math.isinf(whole) else math.ceil(whole / size)


def _waits_between(part: Capacity) -> float:
    """The least number of waits between the steps of an update; 1 if the size is an unresolved token."""
    steps = _steps(part, instances=1)
    return 1 if math.isinf(steps) else max(1, steps - 1)


def _waited(wait: Duration | None, times: float = 1) -> float:
    """The seconds of a wait that happens `times` times; infinity for an unresolved token."""
    seconds = 0 if wait is None else literal_seconds(wait)
    if seconds is None:
        return math.inf
    return seconds * times if seconds else 0


def _whole_seconds(duration: Duration | None) -> int | float | None:
    return None if duration is None else duration.to_seconds()
