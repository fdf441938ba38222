"""Draws the dashboard of an endpoint with the metrics of the local AWS: docs/images/dashboard.svg.

`python -m tools.record_pictures load` records them. A graph whose metrics the local AWS does not publish stays empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.generate import ROOT, Files, Generator
from tools.generate._shapes import frame, svg, text

RECORDED = ROOT / "tools" / "generate" / "recorded" / "dashboard.json"
UNIT, ROW, HEAD, MARGIN = 40, 30, 40, 16
COLOURS = ("#1f77b4", "#e0701d", "#2f8f3a", "#b23a48")
WORDS = (
    "The dashboard of an endpoint on the local AWS: requests, latency, errors, instances and requests per instance "
    "have lines of a load of 20 requests per second. The graphs of GPU, GPU memory, memory, disk and CPU are empty, "
    "because the local AWS does not publish these metrics."
)


def picture(recorded: Mapping[str, Any]) -> bytes:
    """Return the picture of the recorded widgets, in their places."""
    widgets = [widget for widget in recorded["widgets"] if widget["type"] in ("metric", "alarm")]
    top = min(widget["y"] for widget in widgets)
    bottom = max(widget["y"] + widget["height"] for widget in widgets)
    note = f"drawn from metrics of the local AWS, not of AWS: 20 requests per second, values of {recorded['period']} s"
    parts = [text(MARGIN + 3, 26, note, "label")]
    for widget in widgets:
        parts.extend(_widget(widget, HEAD + (widget["y"] - top) * ROW))
    return svg(
        "The dashboard of an endpoint", WORDS, 24 * UNIT + 2 * MARGIN, HEAD + (bottom - top) * ROW + MARGIN, parts
    )


def _widget(widget: Mapping[str, Any], top: float) -> Iterator[str]:
    left = MARGIN + widget["x"] * UNIT + 3
    width, height = widget["width"] * UNIT - 6, widget["height"] * ROW - 6
    yield frame(left, top, width, height, widget["title"].partition(", CPU")[0])
    if widget["type"] == "alarm":
        yield text(left + 12, top + 46, "the states of the variant's alarms")
    elif not widget["lines"]:
        yield text(left + 12, top + height / 2 + 8, "the local AWS does not publish these metrics")
    else:
        yield from _graph(widget["lines"], left + 50, top + 34, width - 66, height - 96)
        for number, line in enumerate(widget["lines"]):
            base = top + height - 24 + 14 * number - 7 * (len(widget["lines"]) - 1)
            yield f'  <rect x="{left + 12}" y="{base - 9}" width="9" height="9" fill="{COLOURS[number]}"/>\n'
            yield text(left + 26, base, line["label"])


def _graph(lines: list[Mapping[str, Any]], left: float, top: float, width: float, height: float) -> Iterator[str]:
    """The axes and a line for each metric."""
    points = [point for line in lines for point in line["points"]]
    most, first, last = max(value for _, value in points) or 1, min(t for t, _ in points), max(t for t, _ in points)
    yield f'  <path class="line" d="M{left} {top} V{top + height} H{left + width}"/>\n'
    yield text(left - 38, top + 10, f"{most:.3g}") + text(left - 38, top + height, "0")
    yield text(left + width - 24, top + height + 14, f"{last - first:.0f} s")
    for number, line in enumerate(lines):
        path = " ".join(
            f"{left + width * (t - first) / ((last - first) or 1):.1f},{top + height * (1 - value / most):.1f}"
            for t, value in line["points"]
        )
        yield f'  <polyline points="{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="2"/>\n'


def _files() -> Files:
    return {"docs/images/dashboard.svg": picture(json.loads(RECORDED.read_text(encoding="utf-8")))}


GENERATOR = Generator(_files)
