"""Simulates how the documented rules of scaling handle a trace of requests. docs/cost.md lists the assumptions.

Target tracking adds instances after 3 minutes of 3 above the target. It removes instances after 15 of 15 minutes below
90 % of it (the alarms that Application Auto Scaling makes; "Target tracking scaling policies", and what it shows of
them in CloudWatch). It adds in proportion to the metric, and removes more gradually. `steps` has the rules of step
policies. The policy with the most instances wins, and the steps that remove instances do not wait for the others (API
reference, PutScalingPolicy).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cdk_triton.cli.estimate.policies import Policy
from cdk_triton.cli.estimate.steps import StepState
from cdk_triton.cli.estimate.trace import Instance
from cdk_triton.errors import ConfigurationError

__all__ = ["Outcome", "simulate"]

OUT_MINUTES, IN_MINUTES = 3, 15
IN_SHARE = 0.9


@dataclass(frozen=True)
class Outcome:
    """A trace under a policy.

    Attributes:
        paid: instances that are paid, by minute.
        over: requests beyond what the instances answer, in all minutes.
        requests: requests in all minutes.
    """

    paid: tuple[int, ...]
    over: float
    requests: float

    @property
    def instance_hours(self) -> float:
        """Hours of instances."""
        return sum(self.paid) / 60


def simulate(requests: Sequence[float], start: datetime, policy: Policy, instance: Instance) -> Outcome:
    """The instances of a variant.

    Args:
        requests: the number of requests in each minute.
        start: the first minute.
        policy: how the variant scales.
        instance: the measured limits of one instance.

    Raises:
        ConfigurationError: the policy follows the GPU, and no utilization was measured.
    """
    targets = list(_targets(policy, instance))
    state = _Simulation(policy, policy.least)
    paid, over = [], 0.0
    for minute, load in enumerate(requests):
        state.tick(start + timedelta(minutes=minute), minute)
        over += max(load - state.serving * instance.requests, 0)
        state.look(load, minute, targets, instance)
        paid.append(state.serving + state.starting)
    return Outcome(tuple(paid), over, sum(requests))


def _targets(policy: Policy, instance: Instance) -> list[float]:
    """In requests per minute and instance."""
    if policy.follows_gpu and instance.gpu_percent is None:
        raise ConfigurationError(
            f"the policy {policy.name} scales on GPU utilization, but the utilization at the measured rate is not "
            "given: add --gpu-percent with the value that `cdk-triton bench` prints on AWS; before that, compare "
            "guesses, such as 60 and 90"
        )
    found = [] if policy.requests is None else [policy.requests]
    if policy.safety_factor is not None:
        found.append(policy.safety_factor * instance.requests)
    if policy.gpu is not None and instance.gpu_percent is not None:
        found.append(policy.gpu / instance.gpu_percent * instance.requests)
    return found


class _Simulation:
    """The instances and alarms at one minute."""

    def __init__(self, policy: Policy, serving: int) -> None:
        self._policy = policy
        self._least, self._most = policy.least, policy.most
        self.serving, self.starting = serving, 0
        self._ready_at = 0
        self._above: dict[int, int] = {}
        self._below: dict[int, int] = {}
        self._last_in = self._last_out = -math.inf
        self._steps = [StepState(each) for each in policy.steps]

    def tick(self, moment: datetime, minute: int) -> None:
        """Instances that have started answer, and schedules change the limits."""
        if self.starting and minute >= self._ready_at:
            self.serving, self.starting = self.serving + self.starting, 0
        for schedule in self._policy.schedules:
            if schedule.cron.matches(moment):
                self._least = self._least if schedule.least is None else schedule.least
                self._most = self._most if schedule.most is None else schedule.most

    def look(self, load: float, minute: int, targets: Sequence[float], instance: Instance) -> None:
        """Show this minute to the alarms, and act on them.

        While instances start, the endpoint is updating, and nothing else changes.
        """
        for number, target in enumerate(targets):
            # Instances that start do not answer, and are taken not to count yet.
            each = load / self.serving
            self._above[number] = self._above.get(number, 0) + 1 if each > target else 0
            self._below[number] = self._below.get(number, 0) + 1 if each < IN_SHARE * target else 0
        for steps, policy in zip(self._steps, self._policy.steps, strict=True):
            steps.look(policy.value(load, self.serving, instance))
        if self.starting:
            return
        asked = [steps.wanted(self.serving, minute) for steps in self._steps]
        wanted = self._wanted(load, minute, targets, asked)
        if wanted > self.serving:
            self.starting, self._ready_at = wanted - self.serving, minute + max(instance.start_minutes, 1)
            self._last_out = minute
            self._begin_cooldowns(asked, minute, self._ready_at, self.starting)
        elif wanted < self.serving:
            self._begin_cooldowns(asked, minute, minute, wanted - self.serving)
            self.serving = wanted
            self._last_in = minute
            self._below.clear()

    def _begin_cooldowns(self, asked: Sequence[int], minute: int, ends: int, change: int) -> None:
        """Only of the step policies that wanted this change."""
        for steps, count in zip(self._steps, asked, strict=True):
            if (count - self.serving) * change > 0:
                steps.acted(minute, ends, change)
            elif change > 0:
                steps.end_scale_in()

    def _wanted(self, load: float, minute: int, targets: Sequence[float], asked: Sequence[int]) -> int:
        """The number of instances. `asked` are the numbers of the step policies."""
        within = min(max(self.serving, self._least), self._most)
        by_steps = [each for each in asked if each != self.serving]
        breached = [target for number, target in enumerate(targets) if self._above[number] >= OUT_MINUTES]
        out = [math.ceil(load / target - 1e-9) for target in breached]
        if minute - self._last_out < self._policy.out_cooldown:
            out = []
        if out or any(each > self.serving for each in by_steps):
            return min(max(*by_steps, *out, within), self._most)
        if by_steps:
            return min(max(*by_steps, self._least), self._most)
        all_below = bool(targets) and all(self._below[number] >= IN_MINUTES for number in range(len(targets)))
        if all_below and minute - max(self._last_in, self._last_out) >= self._policy.in_cooldown:
            needed = max(math.ceil(load / target - 1e-9) for target in targets)
            # More gradually than it adds: one at a time.
            return max(within - 1, needed, self._least) if needed < within else within
        return within
