"""The shapes of the generated pictures: boxes, arrows and texts in SVG, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["arrow", "box", "for_dark_pages", "frame", "svg", "text"]

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
STYLE = """
      .box { fill: #ffffff; stroke: #8394a8; }
      .key { fill: #eef6e6; stroke: #76a33a; }
      .bad { fill: #fdecea; stroke: #c2543f; }
      .frame { fill: #f4f6f9; stroke: #c3ccd6; }
      .name { font-size: 14px; font-weight: 600; fill: #1c2733; text-anchor: middle; }
      .note { font-size: 12px; fill: #47566b; text-anchor: middle; }
      .left { font-size: 12px; fill: #47566b; }
      .mono { font-size: 12px; fill: #1c2733; font-family: ui-monospace, 'DejaVu Sans Mono', monospace; }
      .label { font-size: 12px; font-weight: 600; fill: #47566b; }
      .flow { stroke: #47566b; stroke-width: 1.6; fill: none; marker-end: url(#arrow); }
      .both { marker-start: url(#arrow); }
      .back { stroke-dasharray: 5 4; }
      .line { stroke: #c3ccd6; stroke-width: 1.2; fill: none; }
    """
INVERTED = (
    "<style>@media (prefers-color-scheme: dark) { :root { filter: invert(0.92) hue-rotate(180deg); } }</style>\n</svg>"
)


def svg(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> bytes:
    """Return a whole picture with its alternative text.

    Args:
        title: of the picture.
        description: the same facts in words, for readers who do not see the picture.
        width: in pixels.
        height: in pixels.
        parts: the shapes, the lowest first.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{FONT}" role="img" '
        f'aria-labelledby="title desc">\n  <title id="title">{escape(title)}</title>\n'
        f'  <desc id="desc">{escape(description)}</desc>\n  <defs>\n'
        '    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse">\n      <path d="M0 0 L10 5 L0 10 z" fill="#47566b"/>\n    </marker>\n'
        f'    <style>{STYLE}</style>\n  </defs>\n  <rect width="{width}" height="{height}" fill="#ffffff"/>\n'
    )
    return for_dark_pages(f"{head}{''.join(parts)}</svg>\n").encode()


def for_dark_pages(picture: str) -> str:
    """Return a light picture that a dark page shows inverted, with its hues as they were."""
    before, _, after = picture.rpartition("</svg>")
    return f"{before}{INVERTED}{after}"


def frame(left: float, top: float, width: float, height: float, label: str = "") -> str:
    """Return a frame around other shapes, with a label in its upper left corner."""
    shape = f'  <rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>\n'
    return shape + (text(left + 12, top + 20, label, "label") if label else "")


def box(left: float, top: float, width: float, height: float, name: str, *notes: str, kind: str = "box") -> str:
    """Return a box with a name and notes below it, all centred."""
    middle, first = left + width / 2, top + height / 2 + 5 - 8 * len(notes)
    lines = [f'  <rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>\n']
    lines.append(text(middle, first, name, "name"))
    lines.extend(text(middle, first + 17 + 15 * number, note, "note") for number, note in enumerate(notes))
    return "".join(lines)


def arrow(path: str, label: str = "", at: tuple[float, float] = (0, 0), kind: str = "flow") -> str:
    """Return an arrow along an SVG path, with a label whose middle is at a point.

    The kind "flow both" has a head at each end.
    """
    return f'  <path class="{kind}" d="{path}"/>\n' + (text(*at, label, "note") if label else "")


def text(left: float, top: float, words: str, kind: str = "left") -> str:
    """Return a line of text."""
    return f'  <text class="{kind}" x="{left:g}" y="{top:g}">{escape(words)}</text>\n'
