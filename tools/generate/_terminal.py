"""A terminal with the real output of a program, as SVG: text stays text, and colours are the terminal's."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from io import StringIO

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI
from rich.text import Text

__all__ = ["terminal"]

CELL, LINE, SIZE, MARGIN, BAR = 7.83, 18, 13, 16, 30
# The colours of a light page and of a dark one. Rich's default theme has a white background, and Monokai a dark one.
PAPER, INK = ("#f6f8fa", "#1b1f24"), ("#1f2328", "#e6edf3")


def terminal(output: str, title: str, description: str, columns: int) -> bytes:
    """Return a picture of a terminal window for light and dark pages.

    Args:
        output: the text, with the escape sequences of a terminal.
        title: of the window.
        description: the same in words, for readers who do not see the picture.
        columns: the width of the terminal.
    """
    console = Console(file=StringIO(), width=columns, color_system="truecolor", force_terminal=True)
    lines = [
        [segment for segment in line if segment.text]
        for line in console.render_lines(Text.from_ansi(output.rstrip("\n")), pad=False)
    ]
    width, height = round(2 * MARGIN + columns * CELL), BAR + 2 * MARGIN + len(lines) * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-labelledby="title desc" font-size="{SIZE}" '
        "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n"
        f'  <title id="title">{escape(title)}</title>\n  <desc id="desc">{escape(description)}</desc>\n'
        f'{_colours(lines)}  <rect width="{width}" height="{height}" rx="8" class="paper"/>\n'
    ]
    for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        parts.append(f'  <circle cx="{20 + 20 * number}" cy="18" r="6" fill="{colour}"/>\n')
    for number, line in enumerate(lines):
        parts.extend(_words(line, BAR + MARGIN + (number + 0.75) * LINE))
    return "".join([*parts, "</svg>\n"]).encode()


def _words(line: list[Segment], base: float) -> Iterator[str]:
    """The texts of a line, each as wide as its cells."""
    column = 0
    for words, style, _ in line:
        shown = words.rstrip()
        indent = len(shown) - len(shown.lstrip())
        if shown.strip():
            left, length = MARGIN + (column + indent) * CELL, (len(shown) - indent) * CELL
            yield (
                f'  <text x="{left:.1f}" y="{base:g}" textLength="{length:.1f}" xml:space="preserve"'
                f"{_looks(style)}>{escape(shown.strip())}</text>\n"
            )
        column += len(words)


def _colours(lines: list[list[Segment]]) -> str:
    """The style sheet with a class for each colour that the lines use."""
    pairs = {"paper": PAPER, "ink": INK}
    for _, style, _ in (segment for line in lines for segment in line):
        if style is not None and style.color is not None:
            light = style.color.get_truecolor(DEFAULT_TERMINAL_THEME).hex
            pairs[_class(style)] = (light, style.color.get_truecolor(MONOKAI).hex)
    light, dark = ("".join(f" .{name} {{ fill: {pair[n]}; }}" for name, pair in sorted(pairs.items())) for n in (0, 1))
    return f"  <style>{light}\n    @media (prefers-color-scheme: dark) {{{dark} }} </style>\n"


def _class(style: Style | None) -> str:
    return "ink" if style is None or style.color is None else f"colour-{style.color.number}"


def _looks(style: Style | None) -> str:
    weight = ' font-weight="bold"' if style is not None and style.bold else ""
    faint = ' opacity="0.65"' if style is not None and style.dim else ""
    return f' class="{_class(style)}"{weight}{faint}'
