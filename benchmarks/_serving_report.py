"""The table and the plot of `serving_many.py`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serving_many import Outcome, Run

__all__ = ["Growth", "Sample", "memory_growth", "tree_memory", "write_plot", "write_table"]


@dataclass(frozen=True)
class Sample:
    """A moment.

    Attributes:
        at: seconds since the first request.
        server: MB of tritonserver and the processes of its models.
        local_aws: MB of the local AWS.
        loads: how many loads there were so far.
    """

    at: float
    server: float
    local_aws: float
    loads: int


@dataclass(frozen=True)
class Growth:
    """How memory developed, in multiples of the peak right after the room was full.

    Attributes:
        server: of tritonserver and the processes of its models.
        local_aws: of the local AWS.
    """

    server: float
    local_aws: float


def tree_memory(process: int, *, alone: bool = False) -> float:
    """The memory in MB of a process and of those below it; a shared page counts once for each."""
    status = _text(Path(f"/proc/{process}/status"))
    own = next((int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)
    try:
        threads = [] if alone else list(Path(f"/proc/{process}/task").iterdir())
    except OSError:
        threads = []  # the process has ended
    return own + sum(tree_memory(int(child)) for each in threads for child in _text(each / "children").split())


def _text(file: Path) -> str:
    """A file of a process or a thread; empty if that has ended."""
    try:
        return file.read_text()
    except OSError:
        return ""


def memory_growth(samples: list[Sample], part: Callable[[Sample], float], since: float, room: int) -> float:
    """The peak of the memory at the end, in multiples of the peak right after the room was full.

    Args:
        samples: the moments.
        part: the memory of a moment that is looked at.
        since: when the server was started that runs to the end, in seconds since the first request.
        room: how many models it holds.

    Returns:
        Infinity if the room was not full for three samples.
    """
    rest = [each for each in samples if each.at >= since]
    full = [part(each) for each in rest if each.loads - rest[0].loads >= room]
    third = len(full) // 3
    return max(full[-third:]) / max(full[:third]) if third else float("inf")


def write_table(
    file: Path, run: Run, found: Outcome, measured: Mapping[str, Mapping[str, float]], growth: Growth
) -> None:
    """Write the table in Markdown."""
    waits = statistics.quantiles(found.seconds, n=100)
    rows: dict[str, object] = {
        "ensembles, room for": f"{run.count:,}, {run.room}",
        "requests": f"{found.requests:,} in {run.seconds:g} s",
        "right answers": f"{found.right:,}",
        "of ensembles that never change, outside the kills": f"{found.undisturbed_right:,} of {found.undisturbed:,}",
        "wrong answers, answers of another ensemble": f"{found.wrong}, {found.of_others}",
        "errors that a kill explains, other errors": f"{found.explained}, {len(found.unexplained)}",
        "requests that waited 60 s in vain": found.not_ready,
        "publications and rollbacks meanwhile": run.changes,
        "tritonservers killed": len(run.kills),
        "seconds for an answer: median, p99": f"{waits[49]:.2f}, {waits[98]:.1f}",
        "`ModelCacheHit`, average": f"{100 * measured['ModelCacheHit']['Average']:.0f} %",
        "`LoadedModelCount`, maximum": f"{measured['LoadedModelCount']['Maximum']:g}",
        "`ModelUnloadingTime`: evictions, average": _times(measured["ModelUnloadingTime"]),
        "`ModelLoadingTime`: loads, average": _times(measured["ModelLoadingTime"]),
        "`ModelLoadingWaitTime`: waits, average": _times(measured["ModelLoadingWaitTime"]),
        "MB of tritonserver and its models, at most": f"{max(each.server for each in run.samples):,.0f}",
        "MB of the local AWS, first and last": f"{run.samples[0].local_aws:,.0f}, {run.samples[-1].local_aws:,.0f}",
        "memory at the end, of that when the room was full: tritonserver, local AWS": (
            f"{growth.server:.2f}, {growth.local_aws:.2f}"
        ),
    }
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_plot(file: Path, rows: list[dict[str, Any]], run: Run, began: float) -> None:
    """Plot the time of each answer, the memory and the loads over time; docs/images has the plot of a long run."""
    from matplotlib.figure import Figure
    from tools.generate._shapes import for_dark_pages

    figure = Figure(figsize=(8, 7), layout="constrained")
    answers, memory, loads = figure.subplots(3, 1, sharex=True)
    for kind, colour in (("answer", "tab:blue"), ("error", "tab:red")):
        points = [(row["sent"] - began, row["ended"] - row["sent"]) for row in rows if kind in row]
        if points:
            answers.plot(*zip(*points, strict=True), ".", markersize=3, color=colour, label=kind)
    answers.set_yscale("log")
    answers.set_ylabel("seconds")
    answers.legend(loc="center right")
    times = [each.at for each in run.samples]
    memory.plot(times, [each.server for each in run.samples], label="tritonserver and its models")
    memory.plot(times, [each.local_aws for each in run.samples], label="local AWS")
    memory.set_ylabel("memory, MB")
    memory.legend(loc="lower right")
    loads.plot(times, [each.loads for each in run.samples])
    loads.set_ylabel("loads")
    loads.set_xlabel("seconds")
    for axes in (answers, memory, loads):
        for killed, _ in run.kills:
            axes.axvline(killed - began, color="grey", linestyle="--")
    figure.suptitle(
        f"{run.count:,} ensembles, room for {run.room}, 32 clients; tritonserver killed at the dashed lines"
    )
    figure.savefig(file, format="svg", metadata={"Date": None})
    file.write_text(for_dark_pages(file.read_text(encoding="utf-8")), encoding="utf-8")


def _times(metric: Mapping[str, float]) -> str:
    return f"{metric['SampleCount']:g}, {metric['Average'] / 1e6:.2f} s"
