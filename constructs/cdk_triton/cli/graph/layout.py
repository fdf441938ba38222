"""Computes the places of a picture's parts with Graphviz.

Graphviz gets the sizes of the parts and no text, so that the fonts of the machine do not matter: one diagram gives the
same picture everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdk_triton.errors import ConfigurationError

__all__ = ["Layout", "Size", "laid_out"]

_POINTS = 72  # in an inch, in which Graphviz measures nodes

Point = tuple[float, float]


@dataclass(frozen=True)
class Size:
    """The size of a part, in points."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """The places of a picture's parts, in points from its upper left corner.

    Attributes:
        size: the size of the whole picture.
        middles: part → the middle of the part.
        curves: the points of each line, for cubic curves: the first, and three for each part of the curve.
    """

    size: Size
    middles: Mapping[str, Point]
    curves: Mapping[tuple[str, str], Sequence[Point]]


def laid_out(parts: Mapping[str, Size], lines: Sequence[tuple[str, str]]) -> Layout:
    """Lay out parts from the left to the right.

    Raises:
        ConfigurationError: the extra `plots` is not installed.
    """
    try:
        from pygraphviz import AGraph
    except ImportError as error:
        raise ConfigurationError(
            "a picture as SVG needs Graphviz; install it with: pip install 'cdk-triton[plots]'"
        ) from error
    drawing = AGraph(directed=True, strict=True, rankdir="LR", nodesep="0.22", ranksep="0.3", splines="true")
    for key, size in parts.items():
        width, height = (str(round(each / _POINTS, 4)) for each in (size.width, size.height))
        drawing.add_node(key, label="", shape="box", fixedsize="true", width=width, height=height)
    for source, target in lines:
        drawing.add_edge(source, target, arrowhead="none")
    drawing.layout(prog="dot")
    _, _, right, top = map(float, drawing.graph_attr["bb"].split(","))

    def point(text: str) -> Point:
        x, y = text.split(",")
        return round(float(x), 1), round(top - float(y), 1)

    return Layout(
        Size(round(right, 1), round(top, 1)),
        {key: point(drawing.get_node(key).attr["pos"]) for key in parts},
        {line: [point(each) for each in drawing.get_edge(*line).attr["pos"].split()] for line in lines},
    )
