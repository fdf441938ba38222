"""The rates of a sweep, from the lowest to the first that fails, and the knee between them."""

from __future__ import annotations

from collections.abc import Sequence

from cdk_triton.cli.bench.measurement import Measurement

__all__ = ["MAX_FAILED", "STEP", "ends_sweep", "knee", "rates"]

STEP = 1.25
"""Each rate is a quarter higher than the last, so the knee is known to a quarter."""
MAX_FAILED = 0.01
"""A sweep ends at the first rate of which so many requests fail."""
_KEPT_UP = 0.9
"""Achieved against offered: below it, a queue grows."""
_SLOWER = 2.0
"""Latency against that of the lowest rate: beyond it, requests wait for each other."""


def rates(lowest: float, highest: float) -> list[float]:
    """The rates of a sweep."""
    found = [lowest]
    while found[-1] * STEP < highest:
        found.append(found[-1] * STEP)
    return [*found, highest] if found[-1] < highest else found


def ends_sweep(measured: Measurement) -> str:
    """Why no higher rate is tried; "" if one can be tried."""
    if measured.is_interrupted:
        return "interrupted"
    if measured.failed_share >= MAX_FAILED:
        return f"{measured.failed_share:.1%} of the requests failed"
    if measured.bottleneck:
        return measured.bottleneck
    if measured.achieved < _KEPT_UP * measured.offered:
        return "answers fall behind requests"
    return ""


def knee(sweep: Sequence[Measurement]) -> Measurement | None:
    """The highest rate before latency rises: the endpoint keeps up, and the latency is near that of the lowest rate.

    None if all rates of the sweep are below the knee or all are above it, if a sample is too small for a percentile, or
    if the generator or an interruption ended the sweep first.
    """
    found = None
    for each in sweep:
        if not each.percentiles or ends_sweep(each):
            break
        shared = max(set(each.percentiles) & set(sweep[0].percentiles) & {50.0, 90.0})
        if each.percentiles[shared] > _SLOWER * sweep[0].percentiles[shared]:
            return found
        found = each
    last = sweep[-1]
    return None if found is last or last.bottleneck or last.is_interrupted else found
