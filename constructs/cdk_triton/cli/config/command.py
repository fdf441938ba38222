"""`cdk-triton config`: a first `config.pbtxt` of a network, and the ensemble of several models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton._wording import listed
from cdk_triton.cli.new_files import require_free, write_new
from cdk_triton.cli.terminal import fold, width

if TYPE_CHECKING:
    from cdk_triton.cli.config.drafting import Draft
    from cdk_triton.cli.config.writing import Written

__all__ = ["config", "report"]


class ConfigFormat(StrEnum):
    """How configurations are printed."""

    TEXT = "text"
    JSON = "json"


Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        help="A network (.onnx), a Python model (.py) or a model's directory; several in the order of a request.",
        show_default=False,
    ),
]
Into = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write a model repository there, with the models' files. Of the files there, only an ensemble that this "
        "command wrote and nobody changed is replaced.",
    ),
]
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The name of the ensemble; several models have one, by default `ensemble`.",
        show_default=False,
    ),
]
FormatOption = Annotated[ConfigFormat, typer.Option("--format", help="How to print the configurations.")]


def config(
    models: Models,
    into: Into = None,
    ensemble: Ensemble = None,
    output: FormatOption = ConfigFormat.TEXT,
) -> None:
    """Write a first config.pbtxt of a network, and the ensemble that connects several models.

    Comments mark what no file contains. Example: cdk-triton config tokenizer.py bert.onnx --into models
    """
    from cdk_triton.cli.config.drafting import draft

    drafted = draft(models, "ensemble" if ensemble is None and len(models) > 1 else ensemble)
    if into is not None:
        _write(into, drafted)
    if output is ConfigFormat.JSON:
        typer.echo(_as_json(drafted.written))
    elif into is not None:
        report(into, drafted)
        typer.echo(f"Check it: cdk-triton validate {into}")
    else:
        _print(drafted.written)


def _write(into: Path, drafted: Draft) -> None:
    """The models' files are copied, unless they are there already."""
    files = drafted.new_files(into)
    again = {name: str(files.pop(name)) for name in list(files) if _may_be_replaced(into, name, drafted)}
    require_free(into, files, "--into")
    write_new(into, files, replacing=again)


def _may_be_replaced(into: Path, name: str, drafted: Draft) -> bool:
    """An ensemble's configuration as this command wrote it; one that differs is the user's work."""
    from cdk_triton.cli.config.writing import is_unchanged

    if drafted.ensemble is None or Path(name).parent != Path(drafted.ensemble) or not (into / name).is_file():
        return False
    if not is_unchanged((into / name).read_text(encoding="utf-8", errors="replace")):
        raise typer.BadParameter(
            f"{into / name} exists already, and it is not as this command wrote it, so it is not replaced; move it, or "
            "name another ensemble",
            param_hint="--ensemble",
        )
    return True


def report(into: Path, drafted: Draft) -> None:
    """Print the configurations below a directory, and what the user has to compare with the models."""
    for name, each in drafted.written.items():
        typer.echo(str(into / name))
        for guess in each.guesses:
            if not guess.repeats:
                typer.echo(fold(f"{guess.field}: {guess.reason}", width(), indent="    ", hanging="      "))
    own = [name for name, each in drafted.written.items() if any(not guess.repeats for guess in each.guesses)]
    if own:
        warning = f"Compare the guesses in {listed(own)} with your models: no rule can check a guess."
        typer.echo(fold(warning, width()))
    if drafted.repeated:
        files = listed([str(into / name / "config.pbtxt") for name in drafted.repeated])
        typer.echo(fold(f"After a change of {files}, write the ensemble again:", width()))
        typer.echo(drafted.again(into))


def _print(written: Mapping[str, Written]) -> None:
    for number, (name, each) in enumerate(written.items()):
        if len(written) > 1:
            typer.echo(f"{'' if number == 0 else chr(10)}# {name}")
        typer.echo(each.text, nl=False)


def _as_json(written: Mapping[str, Written]) -> str:
    files = [{"path": name, "content": each.text} for name, each in written.items()]
    guesses = [
        {"path": name, "field": guess.field, "reason": guess.reason}
        for name, each in written.items()
        for guess in each.guesses
    ]
    return json.dumps({"files": files, "guesses": guesses}, indent=2, ensure_ascii=False)
