"""Computes the times of a load's requests before the first one is sent; a seed always gives the same times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cdk_triton.cli.bench.kinds import Arrivals

__all__ = ["send_times"]


def send_times(rate: float, seconds: float, arrivals: Arrivals, seed: int) -> npt.NDArray[np.float64]:
    """The times of the requests in seconds from the start.

    Args:
        rate: requests per second.
        seconds: how long.
        arrivals: whether the intervals are equal, or random as those of independent callers (a Poisson process).
        seed: the seed of the random intervals.
    """
    if arrivals is Arrivals.CONSTANT:
        return np.arange(0, seconds, 1 / rate)
    generator = np.random.default_rng(seed)
    found = np.empty(0)
    last = 0.0
    while last < seconds:
        more = last + np.cumsum(generator.exponential(1 / rate, max(int(rate * seconds), 16)))
        found = np.concatenate([found, more])
        last = float(more[-1])
    return found[found < seconds]
