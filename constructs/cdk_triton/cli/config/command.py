"""`cdk-triton config`: a first `config.pbtxt` of a network, and the ensemble of several models."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton._wording import listed
from cdk_triton.cli.given import require_unused
from cdk_triton.cli.new_files import Content, require_free, write_new, write_over
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
Ensemble = Annotated[str, typer.Option(metavar="NAME", help="The name of the ensemble of several models.")]
FormatOption = Annotated[ConfigFormat, typer.Option("--format", help="How to print the configurations.")]


def config(
    context: typer.Context,
    models: Models,
    into: Into = None,
    ensemble: Ensemble = "ensemble",
    output: FormatOption = ConfigFormat.TEXT,
) -> None:
    """Write a first config.pbtxt of a network, and the ensemble that connects several models.

    Comments mark what no file contains. Example: cdk-triton config tokenizer.py bert.onnx --into models
    """
    if len(models) == 1:
        require_unused(context, "the configuration of a single model", "ensemble")
    from cdk_triton.cli.config.drafting import draft

    drafted = draft(models, ensemble if len(models) > 1 else None)
    if into is not None:
        _write(into, drafted)
    if output is ConfigFormat.JSON:
        typer.echo(_as_json(drafted.written))
    elif into is not None:
        report(into, drafted)
    else:
        _print(drafted.written)


def _write(into: Path, drafted: Draft) -> None:
    """The models' files are copied, unless they are there already."""
    files: dict[str, Content] = {name: each.text for name, each in drafted.written.items()}
    for name, source in drafted.model_files.items():
        if not ((into / name).exists() and (into / name).samefile(source)):
            files[name] = source
    files |= {name: text for name, text in drafted.placeholder.items() if not (into / name).exists()}
    again = {name: files.pop(name) for name in list(files) if _may_be_replaced(into, name, drafted)}
    require_free(into, files, "--into")
    write_new(into, files)
    for name, text in again.items():
        write_over(into / name, str(text))


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
    """Print what was written below a directory, and what the user has to compare with the models."""
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
        typer.echo(f"cdk-triton config {_arguments(into, drafted)}")
    typer.echo(f"Check it: cdk-triton validate {into}")


def _arguments(into: Path, drafted: Draft) -> str:
    """Those that write the ensemble again, from the models in the repository."""
    models = [str(into / face.name) for face in drafted.faces]
    return shlex.join([*models, "--into", str(into), "--ensemble", str(drafted.ensemble)])


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
