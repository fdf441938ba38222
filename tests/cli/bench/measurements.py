"""Measurements that the tests of `bench` make up."""

from __future__ import annotations

from cdk_triton.cli.bench.measurement import Measurement

__all__ = ["rate"]


def rate(offered: float, milliseconds: float) -> Measurement:
    """A rate of which a thousand requests were answered, each as fast."""
    found = Measurement(offered, seconds=1000 / offered, planned=1000)
    for _ in range(1000):
        found.latency.record_value(int(milliseconds * 1000))
    return found
