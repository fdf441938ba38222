"""The result of one rate, with the percentiles for which its sample is large enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hdrh.histogram import HdrHistogram

__all__ = ["Measurement", "new_histogram", "percentiles_of"]

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_BEYOND = 10
"""Answers that are slower than a percentile, at least: the 99th needs 1,000."""

_LONGEST_MICROSECONDS = 300_000_000
_DIGITS = 3

LATE_SECONDS = 0.010
"""Requests that the generator sends later than this are its own latency, not the endpoint's."""
BUSY = 0.9
"""Share of a processor: beyond it, the one thread of the generator has no reserve."""


def new_histogram() -> HdrHistogram:
    """An empty histogram of microseconds, with three significant digits."""
    return HdrHistogram(1, _LONGEST_MICROSECONDS, _DIGITS)


def percentiles_of(histogram: HdrHistogram) -> Mapping[float, float]:
    """Milliseconds by percentile, without the percentiles for which the sample is too small."""
    count = int(histogram.get_total_count())
    return {
        each: histogram.get_value_at_percentile(each) / 1000
        for each in _PERCENTILES
        if count * (100 - each) / 100 >= _BEYOND - 1e-9
    }


def _microseconds(seconds: float) -> int:
    return max(int(seconds * 1e6), 1)


def _rounded(percentiles: Mapping[float, float]) -> dict[str, float]:
    return {f"p{each:g}": round(value, 3) for each, value in percentiles.items()}


@dataclass
class Measurement:
    """One rate.

    Attributes:
        rate: the rate per second that the times of the requests were drawn from.
        seconds: how long requests were sent, in seconds.
        planned: the number of requests that were due.
        dropped: the number of requests that were not sent, because too many requests had no response yet.
        errors: the number of the other requests without a successful response, by SageMaker's error code.
        latency: the latency of the successful responses, in microseconds from the intended time.
        lateness: how much later than intended each request was sent, in microseconds.
        busy: processor time of the generator, as a share of the time.
        is_interrupted: whether the measurement ended early.
        last_answer: when the last successful response came, in seconds from the start.
        first: of streams, the time to the first result, in microseconds from the intended time of the request.
        gaps: of streams, the time from each result to the next one, in microseconds.
        results: the number of results in the successful streams.
        sequences: the number of sequences at the same time; 0 for a load without sequences.
    """

    rate: float
    seconds: float = 0.0
    planned: int = 0
    dropped: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: HdrHistogram = field(default_factory=new_histogram)
    lateness: HdrHistogram = field(default_factory=new_histogram)
    busy: float = 0.0
    is_interrupted: bool = False
    last_answer: float = 0.0
    first: HdrHistogram = field(default_factory=new_histogram)
    gaps: HdrHistogram = field(default_factory=new_histogram)
    results: int = 0
    sequences: int = 0

    def add_stream(self, intended: float, moments: Sequence[float]) -> None:
        """Record when the results of a successful stream arrived, on the clock of the intended time."""
        self.results += len(moments)
        if moments:
            self.first.record_value(_microseconds(moments[0] - intended))
        for earlier, later in pairwise(moments):
            self.gaps.record_value(_microseconds(later - earlier))

    @property
    def results_per_second(self) -> float:
        """Results of successful streams per second, until the last stream ended."""
        return self.results / max(self.seconds, self.last_answer) if self.seconds else 0.0

    @property
    def offered(self) -> float:
        """Requests per second that were due. With random times, this differs a little from the rate."""
        return self.planned / self.seconds if self.seconds else 0.0

    @property
    def answered(self) -> int:
        """The number of successful responses."""
        return int(self.latency.get_total_count())

    @property
    def achieved(self) -> float:
        """Successful responses per second, until the last one: if a queue has grown, late responses lower this."""
        return self.answered / max(self.seconds, self.last_answer) if self.seconds else 0.0

    @property
    def failed_share(self) -> float:
        """The share of the requests without a successful response."""
        return (self.dropped + sum(self.errors.values())) / self.planned if self.planned else 0.0

    @property
    def percentiles(self) -> Mapping[float, float]:
        """Latency in milliseconds by percentile, without the percentiles for which the sample is too small."""
        return percentiles_of(self.latency)

    @property
    def late_share(self) -> float:
        """The share of the requests that `late` judges: one in a hundred, but at least ten requests."""
        sent = int(self.lateness.get_total_count())
        return max(0.01, _BEYOND / sent) if sent else 1.0

    @property
    def late(self) -> float:
        """Seconds by which that share of the requests was sent too late; 0 if there are too few requests."""
        if self.late_share >= 1:
            return 0.0
        return float(self.lateness.get_value_at_percentile(100 * (1 - self.late_share))) / 1e6

    @property
    def bottleneck(self) -> str:
        """The reason if this machine limits the result, and not the endpoint; "" if it does not."""
        if self.busy > BUSY:
            return f"this machine is the bottleneck: bench used {self.busy:.0%} of a processor"
        if self.late > LATE_SECONDS:
            late = f"sent {self.late_share:.0%} of the requests over {self.late * 1000:,.0f} ms too late"
            return f"this machine is the bottleneck: bench {late}, with {self.busy:.0%} of a processor"
        return ""

    def _stream_as_json(self) -> dict[str, Any]:
        if not self.results:
            return {}
        return {
            "results": self.results,
            "results_per_second": round(self.results_per_second, 3),
            "first_result_ms": _rounded(percentiles_of(self.first)),
            "gap_ms": _rounded(percentiles_of(self.gaps)),
        }

    @property
    def next_percentile(self) -> tuple[float, int] | None:
        """The lowest percentile up to the 99th for which the sample is too small, and the answers that it needs."""
        for each in _PERCENTILES[:3]:
            if each not in self.percentiles:
                return each, round(_BEYOND * 100 / (100 - each))
        return None

    def as_json(self) -> dict[str, Any]:
        """For a program; these names are a contract."""
        return {
            "rate_per_second": round(self.rate, 3),
            "offered_per_second": round(self.offered, 3),
            "achieved_per_second": round(self.achieved, 3),
            "seconds": round(self.seconds, 3),
            "requests": self.planned,
            **({"sequences": self.sequences} if self.sequences else {}),
            "answered": self.answered,
            "dropped": self.dropped,
            "errors": dict(self.errors),
            "latency_ms": _rounded(self.percentiles),
            **self._stream_as_json(),
            "generator": {
                "late_ms": round(self.late * 1000, 3),
                "late_share": round(self.late_share, 3),
                "late_ms_p99": round(self.late * 1000, 3) if self.late_share == 0.01 else None,
                "busy": round(self.busy, 3),
                "is_bottleneck": bool(self.bottleneck),
            },
            "interrupted": self.is_interrupted,
        }
