"""A picture of an estimate: requests and paid instances over time, as SVG."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from cdk_triton.cli.estimate.report import HEADING, Report
from cdk_triton.cli.estimate.trace import Trace
from cdk_triton.cli.extras import save_plot

__all__ = ["write_plot"]


def write_plot(report: Report, trace: Trace, file: Path) -> None:
    """Write the picture; the file is replaced at once or not at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    load, instances = figure.subplots(2, 1, sharex=True)
    moments = [trace.start + timedelta(minutes=minute) for minute in range(trace.minutes)]
    for name, requests in trace.requests.items():
        load.plot(moments, [each / 60 for each in requests], label=name)
    load.set_ylabel("requests per second")
    load.legend()
    for row in report.rows:
        instances.step(moments, row.together.paid, where="post", label=row.policy.name)
        if row.apart:
            paid = [sum(each) for each in zip(*(one.paid for one in row.apart), strict=True)]
            instances.step(moments, paid, where="post", linestyle=":", label=f"{row.policy.name}, separate endpoints")
    instances.set_ylabel("paid instances")
    instances.set_ylim(bottom=0)
    instances.legend()
    figure.autofmt_xdate()
    figure.suptitle(HEADING)
    save_plot(figure, file)
