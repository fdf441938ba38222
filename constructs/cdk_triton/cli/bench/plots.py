"""A picture of a sweep: latency and achieved rate over the offered rate, as SVG."""

from __future__ import annotations

from pathlib import Path

from cdk_triton.cli.bench.report import STAND_INS, Report
from cdk_triton.cli.extras import save_plot

__all__ = ["write_plot"]


def write_plot(report: Report, file: Path) -> None:
    """Write the picture; the file is replaced at once or not at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    latency, achieved = figure.subplots(2, 1, sharex=True)
    offered = [each.offered for each in report.sweep]
    for percentile in sorted({one for each in report.sweep for one in each.percentiles}):
        points = [
            (each.offered, each.percentiles[percentile]) for each in report.sweep if percentile in each.percentiles
        ]
        latency.plot(*zip(*points, strict=True), marker="o", label=f"p{percentile:g}")
    latency.set_ylabel("latency from the intended time, ms")
    latency.set_yscale("log")
    if latency.lines:
        latency.legend()
    achieved.plot(offered, [each.achieved for each in report.sweep], marker="o", label="achieved")
    achieved.plot(offered, offered, linestyle=":", label="offered")
    achieved.set_xlabel("offered requests per second")
    achieved.set_ylabel("good answers per second")
    achieved.legend()
    if report.knee is not None:
        for axes in (latency, achieved):
            axes.axvline(report.knee.offered, color="grey", linestyle="--")
    figure.suptitle(report.endpoint + (f"\n{STAND_INS}" if report.is_local else ""), wrap=True)
    save_plot(figure, file)
