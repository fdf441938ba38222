"""A diagram in characters of one width: a box for each step, with the tensors that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton.drawing.diagram import Arrow, Box, Diagram
from cdk_triton.triton.findings import printable

__all__ = ["as_text", "marks"]

_LONGEST = 40


def as_text(diagram: Diagram) -> str:
    """The diagram as lines, without the texts of its findings."""
    names = {box.key: box.name for box in diagram.boxes}
    rows = {box.key: [*_rows(diagram, box, names)] for box in diagram.boxes}
    cells = [row for found in rows.values() for row in found]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(4)]
    bodies = {key: [_joined(row, widths) for row in found] for key, found in rows.items()}
    heads = {box.key: _head(diagram, box) for box in diagram.boxes}
    texts = [line for body in bodies.values() for line in body]
    width = max([*(len(each) + 2 for each in texts), *(len(left) + len(right) + 2 for left, right in heads.values())])
    lines = [f"{printable(diagram.title)}{marks(diagram, diagram.own_findings)}"]
    for number, box in enumerate(diagram.boxes):
        left, right = heads[box.key]
        lines.append("┌" + "─" * (width + 2) + "┐" if number == 0 else "┌" + _upper_edge(width) + "┐")
        lines.append(f"│ {left}{right:>{width - len(left)}} │")
        lines += [f"│   {line:<{width - 2}} │" for line in bodies[box.key]]
        lines.append(
            "└" + "─" * (width + 2) + "┘" if number == len(diagram.boxes) - 1 else "└" + _lower_edge(width) + "┘"
        )
    return "\n".join(lines)


def _lower_edge(width: int) -> str:
    """With the beginning of the line to the next box."""
    return "─" * 3 + "┬" + "─" * (width - 2)


def _upper_edge(width: int) -> str:
    """With the tip of the arrow from the previous box."""
    return "─" * 3 + "▼" + "─" * (width - 2)


def marks(diagram: Diagram, numbers: Sequence[int]) -> str:
    """The numbers of findings, with the sign of an error or a warning: ` ✗1 !2`."""
    return "".join(f" {'✗' if diagram.findings[number - 1].severity == 'error' else '!'}{number}" for number in numbers)


def _head(diagram: Diagram, box: Box) -> tuple[str, str]:
    kind = ", ".join(filter(None, (box.backend, box.place)))
    return f"{_short(box.name)}{marks(diagram, box.findings)}", kind


def _rows(diagram: Diagram, box: Box, names: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """The tensors that a box reads, then those that it writes."""
    for arrow in diagram.arrows:
        if arrow.target == box.key:
            yield _row(diagram, arrow, f"← {_short(names[arrow.source])}", arrow.crossing)
    for arrow in diagram.arrows:
        if arrow.source == box.key:
            yield _row(diagram, arrow, f"→ {_short(names[arrow.target])}", "")


def _row(diagram: Diagram, arrow: Arrow, other: str, crossing: str) -> tuple[str, ...]:
    return other, _short(arrow.tensor), arrow.shape, f"{crossing}{marks(diagram, arrow.findings)}".strip()


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
