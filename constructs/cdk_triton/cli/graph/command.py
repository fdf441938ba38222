"""`cdk-triton graph`: the data flow of a repository as a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.platform_option import platform_of
from cdk_triton.cli.terminal import bold, coloured, fold, width
from cdk_triton.cli.validate import Mode, ModeOption, PlatformOption
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.drawing import Diagram

__all__ = ["graph"]


class GraphFormat(StrEnum):
    """How a picture is printed."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The model repository.", show_default=False)]
FormatOption = Annotated[
    GraphFormat, typer.Option("--format", help="How to print the picture; svg needs the extra plots.")
]


def graph(
    directory: Directory,
    platform: PlatformOption = None,
    mode: ModeOption = Mode.SINGLE,
    output: FormatOption = GraphFormat.TEXT,
) -> None:
    """Draw the ensembles of a model repository, with its findings.

    A picture has the steps with their backends, the tensors with type and shape, and the places where data crosses
    between CPU and GPU. Example: cdk-triton graph models --format svg > models.svg
    """
    target = platform_of(platform)
    from cdk_triton.drawing import as_mermaid, diagrams
    from cdk_triton.triton import ModelRepository

    repository = ModelRepository.from_directory(directory)
    drawn = diagrams(repository, repository.check(mode.value, target))
    if output is GraphFormat.TEXT:
        _print(drawn)
    elif output is GraphFormat.JSON:
        typer.echo(json.dumps({"graphs": [_as_json(each) for each in drawn]}, indent=2, ensure_ascii=False))
    elif output is GraphFormat.MERMAID:
        typer.echo("\n\n".join(as_mermaid(each) for each in drawn))
    else:
        typer.echo(_svg(drawn), nl=False)


def _svg(drawn: Sequence[Diagram]) -> str:
    from cdk_triton.cli.graph.svg import as_svg

    try:
        return as_svg(drawn)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from error


def _print(drawn: Sequence[Diagram]) -> None:
    from cdk_triton.drawing import as_text
    from cdk_triton.drawing.text import marks
    from cdk_triton.triton.findings import printable

    for number, diagram in enumerate(drawn):
        title, *lines = as_text(diagram).split("\n")
        typer.echo(("\n" if number else "") + bold(title))
        typer.echo("\n".join(lines))
        for at, finding in enumerate(diagram.findings, 1):
            text = f"{marks(diagram, [at]).strip()} {finding.severity} {finding.code}: {printable(finding.message)}"
            folded = fold(text, width(), hanging="    ")
            typer.echo(folded.replace(f" {finding.severity} ", f" {coloured(finding.severity, finding.severity)} ", 1))


def _as_json(diagram: Diagram) -> dict[str, object]:
    # Written out: these names are a contract with other programs, the dataclasses are not.
    return {
        "name": diagram.name,
        "ensemble": diagram.is_ensemble,
        "max_batch_size": diagram.max_batch_size,
        "boxes": [
            {
                "key": box.key,
                "name": box.name,
                "backend": box.backend,
                "place": box.place,
                "findings": [*box.findings],
            }
            for box in diagram.boxes
        ],
        "arrows": [
            {
                "source": arrow.source,
                "target": arrow.target,
                "tensor": arrow.tensor,
                "data_type": arrow.data_type,
                "dims": None if arrow.dims is None else [*arrow.dims],
                "crossing": arrow.crossing,
                "findings": [*arrow.findings],
            }
            for arrow in diagram.arrows
        ],
        "findings": [
            {"code": each.code, "severity": each.severity.value, "path": each.path, "message": each.message}
            for each in diagram.findings
        ],
    }
