"""The files of a model repository that are made of networks, Python models and models' directories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cdk_triton.cli.config.connections import connected
from cdk_triton.cli.config.faces import face_of
from cdk_triton.cli.config.writing import ensemble_config, model_config
from cdk_triton.triton.model import CONFIG_NAME

if TYPE_CHECKING:
    from cdk_triton.cli.config.connections import Connected
    from cdk_triton.cli.config.values import Face
    from cdk_triton.cli.config.writing import Written
    from cdk_triton.cli.new_files import Content

__all__ = ["Draft", "draft"]

_KEEPER = "1/README.md"
_PLACEHOLDER = "Keeps the version directory of the ensemble alive: git does not keep an empty one.\n"
_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class Draft:
    """A model repository that is not written yet.

    Attributes:
        faces: the models.
        ensemble: the name of the ensemble that connects them; None without one.
        written: path in the repository → configuration, without those that models have already.
    """

    faces: tuple[Face, ...]
    ensemble: str | None
    written: Mapping[str, Written]

    def new_files(self, into: Path) -> dict[str, Content]:
        """Path in the repository `into` → content: the configurations, and the models' files that are not there yet."""
        files: dict[str, Content] = {name: each.text for name, each in self.written.items()}
        for face in self.faces:
            for name, source in face.files.items():
                target = into / face.name / name
                if not (target.exists() and target.samefile(source)):
                    files[f"{face.name}/{name}"] = source
        if self.ensemble is not None and not (into / self.ensemble / _KEEPER).exists():
            files[f"{self.ensemble}/{_KEEPER}"] = _PLACEHOLDER
        return files

    @property
    def repeated(self) -> tuple[str, ...]:
        """The models whose guesses the ensemble repeats."""
        configs = self.written.values()
        return tuple(dict.fromkeys(guess.repeats for each in configs for guess in each.guesses if guess.repeats))

    def again(self, into: Path) -> str:
        """The command that writes the ensemble again, from the models in the repository."""
        models = [str(into / face.name) for face in self.faces]
        return shlex.join(["cdk-triton", "config", *models, "--into", str(into), "--ensemble", str(self.ensemble)])


def draft(models: Sequence[Path], ensemble: str | None) -> Draft:
    """Read the models, and connect them into an ensemble of this name, if there is one.

    Raises:
        BadParameter: a model cannot be read or connected, or a name is not one of a repository.
    """
    faces = [face_of(path) for path in models]
    _require_directory_names(faces, ensemble)
    found = connected(faces)
    written = {f"{face.name}/{CONFIG_NAME}": model_config(face) for face in found.faces if not face.written}
    if ensemble is not None:
        _require_all_linked(found)
        written[f"{ensemble}/{CONFIG_NAME}"] = ensemble_config(ensemble, found)
    if not written:
        raise typer.BadParameter(f"{faces[0].name} has a {CONFIG_NAME} already; remove it first", param_hint="MODEL")
    return Draft(tuple(faces), ensemble, written)


def _require_directory_names(faces: Sequence[Face], ensemble: str | None) -> None:
    names = [face.name for face in faces] + ([] if ensemble is None else [ensemble])
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"two models have the name {name!r}; rename a file", param_hint="MODEL")
        if not _NAME.fullmatch(name):
            raise typer.BadParameter(
                f"{name!r} is not the name of a directory of a repository; use letters, digits, '_', '-' and '.'",
                param_hint="MODEL" if name != ensemble else "--ensemble",
            )


def _require_all_linked(found: Connected) -> None:
    if len(found.faces) == 1:
        return
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
