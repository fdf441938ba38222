"""Draws which package imports which: docs/images/layers.svg, and the same as text in docs/contributing/architecture.md.

The source is the table `MAY_IMPORT` of tests/architecture/test_structure.py. The picture omits an arrow that follows
from two others.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from html import escape

from tools.generate import ROOT, Files, Generator
from tools.generate._shapes import for_dark_pages

TABLE = ROOT / "tests" / "architecture" / "test_structure.py"
PAGE = "docs/contributing/architecture.md"
PICTURE = "docs/images/layers.svg"
BEGIN = "<!-- begin: written by `make generate` -->\n"
END = "<!-- end -->\n"

Imports = Mapping[str, set[str]]

NOTES = {
    "cli": "the command cdk-triton",
    "local": "an AWS on this machine",
    "hosting": "the CDK constructs",
    "client": "calls an endpoint",
    "artifacts": "recipes, keys, archives",
    "checks": "the rules",
    "sagemaker": "what SageMaker offers",
    "triton": "what Triton is",
}
COLUMNS = {"hosting": 0, "local": 1, "cli": 1, "client": 2}  # 1 for all others
WIDTH, HEIGHT, STEP_X, STEP_Y, MARGIN = 200, 54, 236, 92, 16
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" role="img" aria-labelledby="title">
  <title id="title">Which package of cdk_triton imports which</title>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0 0 L10 5 L0 10 z" fill="#47566b"/>
    </marker>
    <style>
      .box {{ fill: #ffffff; stroke: #8394a8; }}
      .name {{ font-size: 14px; font-weight: 600; fill: #1c2733; text-anchor: middle; }}
      .note {{ font-size: 12px; fill: #47566b; text-anchor: middle; }}
      .flow {{ stroke: #47566b; stroke-width: 1.6; fill: none; marker-end: url(#arrow); }}
    </style>
  </defs>
  <rect width="{width}" height="{height}" fill="#ffffff"/>
"""


def table() -> Imports:
    """Return the packages that each package may import."""
    imports: dict[str, set[str]] = runpy.run_path(str(TABLE))["MAY_IMPORT"]
    return {package: imports[package] for package in imports if package}


def direct(imports: Imports) -> Iterator[tuple[str, str]]:
    """Yield the imports that do not follow from two others."""
    for package, others in imports.items():
        below = {each for other in others for each in reachable(imports, other)}
        yield from ((package, other) for other in sorted(others - below))


def reachable(imports: Imports, package: str) -> set[str]:
    """Return everything that a package imports, directly or through another one."""
    return imports[package].union(*(reachable(imports, other) for other in imports[package]))


def depth(imports: Imports, package: str) -> int:
    """Return how many packages lie below a package, one upon the other."""
    return max((depth(imports, other) + 1 for other in imports[package]), default=0)


def level(imports: Imports, package: str) -> int:
    """Return the row of a package, counted from the bottom: directly below the lowest package that imports it."""
    importers = [depth(imports, each) for each in imports if package in imports[each]]
    return min(importers) - 1 if importers else depth(imports, package)


def picture(imports: Imports) -> str:
    """Return the picture: a box for each package, above those that it imports."""
    top = max(level(imports, package) for package in imports)
    places = {
        package: (MARGIN + COLUMNS.get(package, 1) * STEP_X, MARGIN + (top - level(imports, package)) * STEP_Y)
        for package in imports
    }
    size = {"width": 2 * MARGIN + 2 * STEP_X + WIDTH, "height": 2 * MARGIN + top * STEP_Y + HEIGHT}
    arrows = (_arrow(package, other, places) for package, other in direct(imports))
    boxes = (_box(package, *place) for package, place in places.items())
    return for_dark_pages(HEAD.format(**size) + "".join([*arrows, *boxes]) + "</svg>\n")


def _arrow(package: str, other: str, places: Mapping[str, tuple[int, int]]) -> str:
    """An arrow down; between two columns with one bend, so that it crosses no box of the middle column."""
    (left, top), (other_left, other_top) = places[package], places[other]
    middle, other_middle = left + WIDTH // 2, other_left + WIDTH // 2
    if left == other_left:
        path = f"M{middle} {top + HEIGHT} V{other_top - 2}"
    elif COLUMNS.get(package, 1) == 1:
        side = left + WIDTH if other_left > left else left
        path = f"M{side} {top + HEIGHT // 2} H{other_middle} V{other_top - 2}"
    else:
        side = other_left + WIDTH + 2 if left > other_left else other_left - 2
        path = f"M{middle} {top + HEIGHT} V{other_top + HEIGHT // 2} H{side}"
    return f'  <path class="flow" data-imports="{package} {other}" d="{path}"/>\n'


def _box(package: str, left: int, top: int) -> str:
    middle = left + WIDTH // 2
    return (
        f'  <rect class="box" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n'
        f'  <text class="name" x="{middle}" y="{top + 23}">{package}</text>\n'
        f'  <text class="note" x="{middle}" y="{top + 41}">{escape(NOTES[package])}</text>\n'
    )


def text(imports: Imports) -> str:
    """Return the same as text, the highest package first."""
    ordered = sorted(imports, key=lambda package: (-depth(imports, package), package))
    return "".join(f"{package:<9} → {', '.join(sorted(imports[package])) or 'nothing'}\n" for package in ordered)


def with_imports(page: str, imports: Imports) -> str:
    """Return the page with the text between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n```text\n{text(imports)}```\n\n{END}{rest.split(END)[1]}"


def _files() -> Files:
    page = with_imports((ROOT / PAGE).read_text(encoding="utf-8"), table())
    return {PICTURE: picture(table()).encode(), PAGE: page.encode()}


GENERATOR = Generator(_files)
