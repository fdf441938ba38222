"""`cdk-triton config`: a first `config.pbtxt` of a network, and the ensemble of several models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton._wording import listed
from cdk_triton.cli.given import require_unused
from cdk_triton.cli.new_files import Content, require_free, write_new
from cdk_triton.cli.terminal import fold, width

if TYPE_CHECKING:
    from cdk_triton.cli.config.connections import Connected
    from cdk_triton.cli.config.values import Face
    from cdk_triton.cli.config.writing import Written

__all__ = ["config"]

_CONFIG = "config.pbtxt"
_PLACEHOLDER = "Keeps the version directory of the ensemble alive: git does not keep an empty one.\n"
_NAME = re.compile(r"\w[\w.-]*")


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
    typer.Option(metavar="DIR", help="Write a model repository there, with the models' files, and overwrite nothing."),
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
    from cdk_triton.cli.config.faces import face_of

    faces = [face_of(path) for path in models]
    _require_directory_names(faces, ensemble)
    written = _configurations(faces, ensemble)
    if into is not None:
        _write(into, faces, written, ensemble)
    if output is ConfigFormat.JSON:
        typer.echo(_as_json(written))
    elif into is not None:
        _report(into, written)
    else:
        _print(written)


def _require_directory_names(faces: Sequence[Face], ensemble: str) -> None:
    names = [face.name for face in faces] + ([ensemble] if len(faces) > 1 else [])
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"two models have the name {name!r}; rename a file", param_hint="MODEL")
        if not _NAME.fullmatch(name):
            raise typer.BadParameter(
                f"{name!r} is not the name of a directory of a repository; use letters, digits, '_', '-' and '.'",
                param_hint="MODEL" if name != ensemble else "--ensemble",
            )


def _configurations(faces: Sequence[Face], ensemble: str) -> Mapping[str, Written]:
    """Path in the repository → configuration, without those that models have already."""
    from cdk_triton.cli.config.connections import connected
    from cdk_triton.cli.config.writing import ensemble_config, model_config

    found = connected(faces)
    written = {f"{face.name}/{_CONFIG}": model_config(face) for face in found.faces if not face.written}
    if len(faces) > 1:
        _require_all_linked(found)
        written[f"{ensemble}/{_CONFIG}"] = ensemble_config(ensemble, found)
    if not written:
        raise typer.BadParameter(f"{faces[0].name} has a {_CONFIG} already; remove it first", param_hint="MODEL")
    return written


def _require_all_linked(found: Connected) -> None:
    linked = {model for place, link in found.links.items() for model in (place.model, link.source.model)}
    for face in found.faces:
        if face.name not in linked:
            reasons = [reason for place, reason in found.open_reasons.items() if place.model == face.name]
            why = f": {reasons[0]}" if reasons else ""
            raise typer.BadParameter(
                f"no tensor of {face.name!r} can be connected with another model by name, type and shape{why}; rename "
                "tensors, or write the ensemble by hand",
                param_hint="MODEL",
            )


def _write(into: Path, faces: Sequence[Face], written: Mapping[str, Written], ensemble: str) -> None:
    """The models' files are copied, unless they are there already."""
    files: dict[str, Content] = {name: each.text for name, each in written.items()}
    for face in faces:
        for name, source in face.files.items():
            target = into / face.name / name
            if not (target.exists() and target.samefile(source)):
                files[f"{face.name}/{name}"] = source
    if len(faces) > 1:
        files[f"{ensemble}/1/README.md"] = _PLACEHOLDER
    require_free(into, files, "--into")
    write_new(into, files)


def _report(into: Path, written: Mapping[str, Written]) -> None:
    for name, each in written.items():
        typer.echo(str(into / name))
        for guess in each.guesses:
            typer.echo(fold(f"{guess.field}: {guess.reason}", width(), indent="    ", hanging="      "))
    if guessed := [name for name, each in written.items() if each.guesses]:
        warning = f"Compare the guesses in {listed(guessed)} with your models: no rule can check a guess."
        typer.echo(fold(warning, width()))
    typer.echo(f"Check it: cdk-triton validate {into}")


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
