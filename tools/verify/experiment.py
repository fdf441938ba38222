"""What an experiment is: some stacks, and observations that decide claims."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aws_cdk as cdk
    from tools.verify.trial import Trial

__all__ = ["Experiment", "Observation", "experiment", "names"]

_PACKAGE = "tools.verify.experiments"


@dataclass(frozen=True)
class Observation:
    """What one part of an experiment has seen.

    Attributes:
        part: the part, as claims name it after the slash.
        holds: whether the claim holds; None if this run could not decide it.
        seen: the evidence, in the service's own words where it has any.
    """

    part: str
    holds: bool | None
    seen: str


@dataclass(frozen=True)
class Experiment:
    """An experiment, which decides the claims whose `experiment` is `<module>/<part>`.

    Attributes:
        parts: the parts that it observes.
        minutes: how long it takes, cleaning up included.
        dollars: what it costs at most, in us-east-1, with the prices of docs/cost.md.
        spends: what the money is for.
        observe: makes the observations.
        stacks: adds stacks to an app; None if the experiment only calls services.
        rest: how long the stacks are left alone between their deployment and the observations.
    """

    parts: tuple[str, ...]
    minutes: int
    dollars: float
    spends: str
    observe: Callable[[Trial], Iterator[Observation]]
    stacks: Callable[[cdk.App], None] | None = None
    rest: timedelta = timedelta(0)


def names() -> list[str]:
    """The names of all experiments, the cheapest first."""
    modules = [each.name for each in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__)]
    found = [name for name in modules if not name.startswith("_")]
    return sorted(found, key=lambda name: (experiment(name).dollars, experiment(name).minutes, name))


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    found: Experiment = importlib.import_module(f"{_PACKAGE}.{name}").EXPERIMENT
    return found
