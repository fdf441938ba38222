"""Draws a diagram as SVG: boxes for steps, pills for tensors, and marks where data crosses between CPU and GPU."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from cdk_triton.cli.graph.layout import Layout, Size, laid_out
from cdk_triton.drawing import Arrow, Box, Diagram
from cdk_triton.drawing.text import marks
from cdk_triton.triton.findings import printable

__all__ = ["as_svg"]

_MARGIN, _TITLE = 16, 30
_NAME, _NOTE = 8.2, 6.9  # the width of a character of each size, with some room
_LONGEST = 36
_FINDING, _LINE = 110, 16  # characters and height of a line below the picture
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" role="img" aria-labelledby="title">
  <title id="title">{title}</title>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0 0 L10 5 L0 10 z" fill="#47566b"/>
    </marker>
    <style>
      .step {{ fill: #ffffff; stroke: #8394a8; }}
      .gpu {{ fill: #e3f1e3; stroke: #4c8a4c; }}
      .outside {{ fill: #f4f6f9; stroke: #c3ccd6; }}
      .tensor {{ fill: #ffffff; stroke: #c3ccd6; stroke-dasharray: 2 2; }}
      .copy {{ fill: #fff4d6; stroke: #b7791f; }}
      .warning {{ stroke: #b7791f; stroke-width: 2; }}
      .error {{ stroke: #c0392b; stroke-width: 2; }}
      .name {{ font-size: 14px; font-weight: 600; fill: #1c2733; text-anchor: middle; }}
      .note {{ font-size: 12px; fill: #47566b; text-anchor: middle; }}
      .title {{ font-size: 14px; font-weight: 600; fill: #1c2733; }}
      .finding {{ font-size: 12px; fill: #1c2733; }}
      .flow {{ stroke: #47566b; stroke-width: 1.4; fill: none; }}
      .last {{ marker-end: url(#arrow); }}
    </style>
  </defs>
  <rect width="{width}" height="{height}" fill="#ffffff"/>
"""


@dataclass(frozen=True)
class _Part:
    kind: str
    name: str
    note: str = ""
    finding: str = ""

    @property
    def size(self) -> Size:
        of_name = _NOTE if self.kind in ("tensor", "copy") else _NAME
        width = max(len(self.name) * of_name, len(self.note) * _NOTE) + 20
        return Size(round(width, 1), 22 if not self.note else 40 if self.kind == "tensor" else 48)


def as_svg(diagrams: Sequence[Diagram]) -> str:
    """The diagrams in one picture, one below the other.

    Raises:
        ConfigurationError: the extra `plots` is not installed.
    """
    width, top, body = 0.0, float(_MARGIN), []
    for diagram in diagrams:
        parts = dict(_parts(diagram))
        lines = list(_lines(diagram))
        layout = laid_out({key: part.size for key, part in parts.items()}, lines)
        title = f"{printable(diagram.title)}{marks(diagram, diagram.own_findings)}"
        body.append(f'  <text class="title" x="{_MARGIN}" y="{_number(top + 14)}">{escape(title)}</text>\n')
        body.append(f'  <g transform="translate({_MARGIN} {_number(top + _TITLE)})">\n')
        body += [*_drawn_lines(parts, layout), *_drawn_parts(parts, layout), "  </g>\n"]
        top += _TITLE + layout.size.height + _LINE
        notes = list(_findings(diagram))
        for line in notes:
            body.append(f'  <text class="finding" x="{_MARGIN}" y="{_number(top + 12)}">{escape(line)}</text>\n')
            top += _LINE
        top += _MARGIN
        widest = max([*(len(line) * _NOTE for line in notes), len(title) * _NAME, layout.size.width])
        width = max(width, widest + 2 * _MARGIN)
    head = _HEAD.format(
        width=_number(width), height=_number(top), title=escape("; ".join(printable(each.title) for each in diagrams))
    )
    return "".join([head, *body, "</svg>\n"])


def _parts(diagram: Diagram) -> Iterator[tuple[str, _Part]]:
    for box in diagram.boxes:
        yield f"box {box.key}", _of_box(diagram, box)
    for arrow in diagram.arrows:
        numbers = [number for each in diagram.arrows if _tensor(each) == _tensor(arrow) for number in each.findings]
        name = f"{_short(arrow.tensor)}{marks(diagram, numbers)}"
        yield _tensor(arrow), _Part("tensor", name, arrow.shape, _severity(diagram, numbers))
        if arrow.crossing:
            yield _copy_name(arrow), _Part("copy", arrow.crossing)


def _of_box(diagram: Diagram, box: Box) -> _Part:
    if not box.key.isdigit():
        return _Part("outside", box.name)
    kind = "gpu" if box.place == "GPU" else "step"
    note = ", ".join(filter(None, (box.backend, box.place))) or "backend unknown"
    return _Part(kind, f"{_short(box.name)}{marks(diagram, box.findings)}", note, _severity(diagram, box.findings))


def _severity(diagram: Diagram, numbers: Sequence[int]) -> str:
    severities = {str(diagram.findings[number - 1].severity) for number in numbers}
    return "error" if "error" in severities else "warning" if severities else ""


def _lines(diagram: Diagram) -> Iterator[tuple[str, str]]:
    """Each line once. A tensor that is read on the other processor has one copy there."""
    seen = set()
    for arrow in diagram.arrows:
        target = f"box {arrow.target}"
        way = [f"box {arrow.source}", _tensor(arrow), *([_copy_name(arrow)] if arrow.crossing else []), target]
        for line in pairwise(way):
            if line not in seen:
                seen.add(line)
                yield line


def _tensor(arrow: Arrow) -> str:
    return f"tensor {arrow.source} {arrow.tensor}"


def _copy_name(arrow: Arrow) -> str:
    """The same for all steps that read the tensor there."""
    return f"copy {arrow.source} {arrow.tensor} {arrow.crossing}"


def _drawn_lines(parts: Mapping[str, _Part], layout: Layout) -> Iterator[str]:
    for (_, target), points in layout.curves.items():
        (x, y), *rest = points
        curve = " ".join(f"{_number(a)} {_number(b)}" for a, b in rest)
        last = " last" if target.startswith("box ") else ""
        yield f'    <path class="flow{last}" d="M{_number(x)} {_number(y)} C{curve}"/>\n'


def _drawn_parts(parts: Mapping[str, _Part], layout: Layout) -> Iterator[str]:
    for key, part in parts.items():
        (x, y), size = layout.middles[key], part.size
        left, top = _number(x - size.width / 2), _number(y - size.height / 2)
        radius = 6 if part.kind in ("step", "gpu") else size.height / 2 if not part.note else 12
        yield (
            f'    <rect class="{f"{part.kind} {part.finding}".strip()}" x="{left}" y="{top}" '
            f'width="{_number(size.width)}" height="{_number(size.height)}" rx="{_number(radius)}"/>\n'
        )
        first = y + 4 if not part.note else y - 3
        kind = "note" if part.kind in ("tensor", "copy") else "name"
        yield f'    <text class="{kind}" x="{_number(x)}" y="{_number(first)}">{escape(part.name)}</text>\n'
        if part.note:
            yield f'    <text class="note" x="{_number(x)}" y="{_number(y + 13)}">{escape(part.note)}</text>\n'


def _findings(diagram: Diagram) -> Iterator[str]:
    for number, finding in enumerate(diagram.findings, 1):
        text = f"{marks(diagram, [number]).strip()} {finding.code}: {printable(finding.message)}"
        first, *more = textwrap.wrap(text, _FINDING)
        yield from (first, *(f"      {line}" for line in more))


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
