"""A diagram in the language of Mermaid, which GitHub, GitLab and MkDocs draw.

Syntax: https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.drawing.diagram import Arrow, Box, Diagram
from cdk_triton.drawing.text import marks
from cdk_triton.triton.findings import printable

__all__ = ["as_mermaid"]

_STYLES = (
    "classDef gpu fill:#e3f1e3,stroke:#4c8a4c,color:#1c2733",
    "classDef cpu fill:#ffffff,stroke:#8394a8,color:#1c2733",
    "classDef outside fill:#f4f6f9,stroke:#c3ccd6,color:#1c2733",
    "classDef warning fill:#fff4d6,stroke:#b7791f,color:#1c2733",
    "classDef error fill:#fde4e1,stroke:#c0392b,color:#1c2733",
)


def as_mermaid(diagram: Diagram) -> str:
    """The diagram as a flowchart; a dotted arrow is a tensor that is copied between CPU and GPU."""
    return "\n".join(["flowchart LR", *(f"    {line}" for line in _lines(diagram))])


def _lines(diagram: Diagram) -> Iterator[str]:
    for box in diagram.boxes:
        yield f"{_id(box.key)}{_shape(diagram, box)}:::{_style(diagram, box)}"
    for arrow in diagram.arrows:
        head = "-.->" if arrow.crossing else "-->"
        yield f"{_id(arrow.source)} {head}|{_label(diagram, arrow)}| {_id(arrow.target)}"
    yield from _STYLES


def _id(key: str) -> str:
    return f"step{key}" if key.isdigit() else key


def _shape(diagram: Diagram, box: Box) -> str:
    if not box.key.isdigit():
        return f'(["{_escaped(box.name)}"])'
    kind = ", ".join(filter(None, (box.backend, box.place)))
    name = f"{_escaped(box.name)}{marks(diagram, box.findings)}"
    return f'["{name}<br/>{_escaped(kind)}"]' if kind else f'["{name}"]'


def _style(diagram: Diagram, box: Box) -> str:
    severities = {str(diagram.findings[number - 1].severity) for number in box.findings}
    if severities:
        return "error" if "error" in severities else "warning"
    return "outside" if not box.key.isdigit() else "gpu" if box.place == "GPU" else "cpu"


def _label(diagram: Diagram, arrow: Arrow) -> str:
    parts = [_escaped(arrow.tensor), _escaped(arrow.shape), arrow.crossing]
    return '"' + "<br/>".join(filter(None, parts)) + marks(diagram, arrow.findings) + '"'


def _escaped(text: str) -> str:
    """`#` begins the code of a character in a label."""
    safe = "".join(each if each.isalnum() or each in " _.,-→" else f"#{ord(each)};" for each in printable(text))
    return safe or " "
