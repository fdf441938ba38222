"""The results of `bench`, for a person and for a program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdk_triton.cli.artifacts.text import table
from cdk_triton.cli.bench.cloudwatch import LoadPart
from cdk_triton.cli.bench.cold import ColdLoad
from cdk_triton.cli.bench.measurement import Measurement, percentiles_of
from cdk_triton.cli.bench.sweep import ends_sweep
from cdk_triton.triton.findings import printable

__all__ = ["STAND_INS", "Report", "as_json", "as_text"]

_DEVIATIONS, _ROUND_SECONDS = 3, 5
"""The count of a Poisson process varies by the root of its mean, so a longer advice is not missed by chance."""

STAND_INS = "a measurement of stand-ins on this machine, not of a GPU: no setting follows from it"


@dataclass
class Report:
    """The result of a measurement.

    Attributes:
        endpoint: the endpoint.
        is_local: whether the local AWS responded.
        instances: the number of instances of the variants that responded, or of copies of the component.
        sweep: the rates, in their order.
        ended: the reason why the sweep ended before its highest rate; "" if it tried that rate.
        knee: the rate before latency rises.
        at_knee: the measurement of some minutes at the knee.
        gpu_percent: the utilization of one GPU in these minutes; None if it is not known.
        gpu_note: the reason why `gpu_percent` is not known.
        cold: the cold loads.
        parts: the parts of the cold loads, from CloudWatch.
        messages: the first message of each code of an error.
        is_interrupted: whether Ctrl-C ended the measurement.
    """

    endpoint: str
    is_local: bool
    instances: int
    sweep: list[Measurement] = field(default_factory=list)
    ended: str = ""
    knee: Measurement | None = None
    at_knee: Measurement | None = None
    gpu_percent: float | None = None
    gpu_note: str = "is not known: CloudWatch has fewer than 3 full minutes of GPUUtilization at the knee"
    cold: list[ColdLoad] = field(default_factory=list)
    parts: Sequence[LoadPart] = ()
    messages: dict[str, str] = field(default_factory=dict)
    is_interrupted: bool = False

    @property
    def has_answers(self) -> bool:
        """Whether any request was answered well."""
        return any(each.answered for each in self.sweep) or any(not each.error for each in self.cold)

    @property
    def lost_knee(self) -> str:
        """Why the measurement at the knee gives no setting; "" if it gives one."""
        return "" if self.at_knee is None else ends_sweep(self.at_knee)

    @property
    def max_requests_per_second(self) -> float | None:
        """The setting for `scale_on_invocations`: good answers per second and instance at the knee."""
        if self.is_local or self.knee is None or self.is_interrupted or self.lost_knee:
            return None
        return round((self.at_knee or self.knee).achieved / self.instances, 2)

    @property
    def target_utilization_percent(self) -> float | None:
        """The setting for `scale_on_gpu_utilization`."""
        return None if self.is_local or self.gpu_percent is None or self.lost_knee else round(self.gpu_percent, 1)


def as_json(report: Report) -> dict[str, Any]:
    """For a program; these names are a contract."""
    return {
        "endpoint": report.endpoint,
        "stand_ins": report.is_local,
        "instances": report.instances,
        "rates": [each.as_json() for each in report.sweep],
        "ended": report.ended or None,
        "knee_per_second": None if report.knee is None else round(report.knee.rate, 3),
        "at_knee": None if report.at_knee is None else report.at_knee.as_json(),
        "max_requests_per_second": report.max_requests_per_second,
        "target_utilization_percent": report.target_utilization_percent,
        "messages": dict(report.messages),
        "cold_loads": [
            {
                "target_model": each.target,
                "first_seconds": None if each.error else round(each.first, 6),
                "second_seconds": None if each.error else round(each.second, 6),
                "error": each.error or None,
            }
            for each in report.cold
        ],
        "cold_parts": [{"metric": each.name, "count": each.count, "seconds": each.seconds} for each in report.parts],
        "interrupted": report.is_interrupted,
    }


def as_text(report: Report) -> Iterator[str]:
    """For a person."""
    measured = [*report.sweep, *([] if report.at_knee is None else [report.at_knee])]
    if report.is_interrupted and not measured and not report.cold:
        yield "interrupted before the first result"
        return
    if measured:
        yield from _rates(measured)
        yield from _streams([each for each in measured if each.results])
        yield from _missing_percentiles(measured)
        yield from (printable(f"{code}: {message}") for code, message in report.messages.items())
    if report.cold:
        yield from _cold(report)
    if report.is_interrupted:
        yield "interrupted: these are the results until then"
    yield from _knee_or_reason(report)
    if report.is_local:
        yield STAND_INS
    elif report.lost_knee:
        yield f"no setting: in the minutes at the knee, {report.lost_knee}"
    else:
        yield from _settings(report)


def _knee_or_reason(report: Report) -> Iterator[str]:
    if report.knee is not None:
        beyond = next(each for each in report.sweep if each.rate > report.knee.rate)
        reason = "" if beyond.is_interrupted else ends_sweep(beyond)
        yield f"the knee is at {_number(report.knee.rate)}/s: beyond it {reason or 'latency rises'}"
    elif report.is_interrupted:
        return
    elif report.ended and report.sweep[-1].bottleneck:
        yield (
            "no knee: this machine is the bottleneck before the endpoint is. Send from a larger one, or when other "
            "programs do not use it"
        )
    elif report.ended and len(report.sweep) == 1:
        yield "no knee: the lowest rate is too high already. Begin lower, with --rate"
    elif len(report.sweep) > 1:
        few = not report.sweep[0].percentiles
        yield f"no knee up to the highest rate: {'raise --duration' if few else 'raise --max-rate'}"


def _missing_percentiles(measured: Sequence[Measurement]) -> Iterator[str]:
    """How long the last rate takes for the next percentile."""
    last = measured[-1]
    if last.next_percentile is None or last.is_interrupted or not last.answered:
        return
    percentile, needed = last.next_percentile
    rate = last.answered / max(last.seconds, last.planned / last.rate)
    seconds = (needed + _DEVIATIONS * math.sqrt(needed)) / rate
    duration = _ROUND_SECONDS * math.ceil(seconds / _ROUND_SECONDS)
    yield f"P{percentile:g} needs {needed:,} answers: --duration {duration} or more at this rate"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _settings(report: Report) -> Iterator[str]:
    if report.max_requests_per_second is not None:
        yield f"max_requests_per_second={report.max_requests_per_second:g}"
    if report.target_utilization_percent is not None:
        yield f"target_utilization_percent={report.target_utilization_percent:g}"
    elif report.at_knee is not None:
        yield f"target_utilization_percent {report.gpu_note}"


def _rates(measured: Sequence[Measurement]) -> Iterator[str]:
    shown = sorted({percentile for each in measured for percentile in each.percentiles})
    sequences = ["SEQUENCES"] if any(each.sequences for each in measured) else []
    headings = ["RATE/S", *sequences, "OFFERED/S", "ACHIEVED/S", "REQUESTS", "FAILED"]
    rows = [
        [
            _number(each.rate),
            *(f"{each.sequences:,}" for _ in sequences),
            _number(each.offered),
            _number(each.achieved),
            f"{each.planned:,}",
            f"{each.failed_share:.2%}",
            *(_number(each.percentiles[one]) if one in each.percentiles else "" for one in shown),
            _note(each),
        ]
        for each in measured
    ]
    yield from table([*headings, *(f"P{each:g} MS" for each in shown), "NOTE"], rows)


def _streams(measured: Sequence[Measurement]) -> Iterator[str]:
    """The results within the streams: when the first one came, and how long after each other the rest."""
    if not measured:
        return
    parts = [(percentiles_of(each.first), percentiles_of(each.gaps)) for each in measured]
    first = sorted({one for of_first, _ in parts for one in of_first})
    gaps = sorted({one for _, of_gaps in parts for one in of_gaps})
    headings = ["RATE/S", "RESULTS", "RESULTS/S", *(f"FIRST P{one:g} MS" for one in first)]
    rows = [
        [
            _number(each.rate),
            f"{each.results:,}",
            _number(each.results_per_second),
            *(_number(of_first[one]) if one in of_first else "" for one in first),
            *(_number(of_gaps[one]) if one in of_gaps else "" for one in gaps),
        ]
        for each, (of_first, of_gaps) in zip(measured, parts, strict=True)
    ]
    yield from table([*headings, *(f"GAP P{one:g} MS" for one in gaps)], rows)


def _note(measured: Measurement) -> str:
    notes = []
    if measured.bottleneck:
        notes.append(measured.bottleneck)
    if measured.dropped:
        notes.append(f"{measured.dropped:,} dropped")
    notes += [f"{count:,} {code}" for code, count in measured.errors.most_common(3)]
    return "; ".join(notes)


def _cold(report: Report) -> Iterator[str]:
    rows = [
        (each.target, "", "", each.error)
        if each.error
        else (each.target, f"{each.first:.3f}", f"{each.second:.3f}", f"{max(each.first - each.second, 0):.3f}")
        for each in report.cold
    ]
    yield from table(("TARGET MODEL", "FIRST S", "SECOND S", "LOAD S"), rows)
    if report.parts:
        parts = [(each.name, str(each.count), f"{each.seconds:.3f}") for each in report.parts]
        yield from table(("PART (CLOUDWATCH)", "COUNT", "MEAN S"), parts)
    elif any(each.is_cold for each in report.cold):
        yield "CloudWatch does not have the parts of these loads"
    else:
        yield "the target models were loaded before: the first request of each was as fast as the second"
