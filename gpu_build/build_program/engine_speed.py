"""Measures how fast a TensorRT plan is on the GPU that it was built for, with trtexec's own random inputs.

The figures are for the manifest of the archive. Nothing depends on them, so a run that fails is a warning.
"""

from __future__ import annotations

import re
from typing import Any, Iterable

from .step import BuildError, Work
from .stop import StoppedError

__all__ = ["measure_speed", "speed_in"]

_OPTIONS = ("--warmUp=200", "--duration=3")  # milliseconds and seconds

# `[I] Throughput: 812.5 qps` and `[I] Latency: min = 1.2 ms, max = 2.4 ms, mean = 1.3 ms, median = 1.3 ms,
# percentile(90%) = 1.4 ms, percentile(95%) = 1.5 ms, percentile(99%) = 1.9 ms`: sampleReporting.cpp,
# printPerformanceReport, v8.6.1 to v11.1.
_THROUGHPUT = re.compile(r"\bThroughput: ([\d.e+-]+) qps")
_LATENCY = re.compile(r"\] Latency: (.+)$")
_FIGURE = re.compile(r"(min|max|mean|median|percentile\((\d+)%\)) = ([\d.e+-]+) ms")


def measure_speed(work: Work, name: str, command: list[str]) -> dict[str, Any] | None:
    """The figures of a short run; None where a stand-in has built the plan, or the run failed.

    Args:
        work: runs trtexec.
        name: the step's name, which begins a warning.
        command: trtexec and the options that load the plan.

    Raises:
        StoppedError: the program has to end.
    """
    if "trtexec" in work.stand_ins:
        return None
    try:
        return speed_in(work.run([*command, *_OPTIONS], what="measuring the speed of the plan"))
    except StoppedError:
        raise
    except BuildError as error:
        work.warn(f"{name}: the speed of the plan was not measured: {error.reason}")
        return None


def speed_in(lines: Iterable[str]) -> dict[str, Any] | None:
    """The throughput in inferences per second and the latency in milliseconds; None if they were not printed."""
    speed: dict[str, Any] = {}
    for line in lines:
        if (found := _THROUGHPUT.search(line)) is not None:
            speed["inferences_per_second"] = float(found.group(1))
        if (found := _LATENCY.search(line)) is not None:
            speed["latency_milliseconds"] = {
                f"p{percentile}" if percentile else word: float(value)
                for word, percentile, value in _FIGURE.findall(found.group(1))
            }
    return speed or None
