"""The files of a model repository that are made of networks, Python models and models' directories."""

from __future__ import annotations

import re
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

    @property
    def placeholder(self) -> dict[str, Content]:
        """The file that keeps the version directory of the ensemble, by its path."""
        return {} if self.ensemble is None else {f"{self.ensemble}/1/README.md": _PLACEHOLDER}

    @property
    def model_files(self) -> dict[str, Path]:
        """Path in the repository → the model's file that is copied there."""
        return {f"{face.name}/{name}": file for face in self.faces for name, file in face.files.items()}

    @property
    def repeated(self) -> tuple[str, ...]:
        """The models whose guesses the ensemble repeats."""
        configs = self.written.values()
        return tuple(dict.fromkeys(guess.repeats for each in configs for guess in each.guesses if guess.repeats))


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
