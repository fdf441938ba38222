"""A build specification of CodeBuild, read strictly: what is not run here is an error, never skipped.

Source: "Build specification reference for CodeBuild", version 0.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cdk_triton.errors import LocalError

__all__ = ["PHASES", "Artifacts", "Buildspec", "BuildspecError", "Phase", "read_buildspec"]

PHASES = ("install", "pre_build", "build", "post_build")
"""The phases of a build specification, in order."""


class BuildspecError(LocalError):
    """A build specification cannot be used; CodeBuild's status code for it is YAML_FILE_ERROR."""


@dataclass(frozen=True)
class Phase:
    """The commands of one phase.

    Attributes:
        commands: run one after the other until one fails.
        finally_commands: run after these, even after a failure.
        abort: whether a failure ends the build, if CodeBuild allows a choice (`on-failure`).
    """

    commands: tuple[str, ...] = ()
    finally_commands: tuple[str, ...] = ()
    abort: bool | None = None


@dataclass(frozen=True)
class Artifacts:
    """The artifacts of a build.

    Attributes:
        files: glob patterns, relative to the base directory.
        base_directory: relative to the source directory.
        name: for artifacts whose name the project leaves to the specification.
    """

    files: tuple[str, ...]
    base_directory: str = "."
    name: str | None = None

    def found(self, source: Path) -> tuple[Path, list[Path]]:
        """The base directory, and the files in it that match; links are not followed.

        Raises:
            LocalError: no file matches; the message is CodeBuild's.
        """
        base = source / self.base_directory
        if not base.is_dir():
            raise LocalError(f"no matching base directory path found for {self.base_directory}")
        files = {
            path for pattern in self.files for path in base.glob(pattern) if path.is_file() and not path.is_symlink()
        }
        if not files:
            raise LocalError(f"no matching artifact paths found for {', '.join(self.files)}")
        return base, sorted(files)


@dataclass(frozen=True)
class Buildspec:
    """A build specification.

    Attributes:
        phases: the phases of the specification, by name.
        variables: environment variables.
    """

    phases: Mapping[str, Phase]
    variables: Mapping[str, str] = field(default_factory=dict)
    artifacts: Artifacts | None = None


def read_buildspec(text: str) -> Buildspec:
    """Read a build specification, YAML or JSON.

    Raises:
        BuildspecError: the text is not a build specification, or has a part that is not modelled here.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BuildspecError(f"the buildspec is not YAML: {' '.join(str(error).split())}") from error
    document = _mapping(document, "the buildspec", {"version", "env", "phases", "artifacts"})
    if str(document.get("version")) != "0.2":
        raise BuildspecError(
            f"the buildspec's version is {document.get('version')!r}, but the local AWS models only 0.2"
        )
    env = _mapping(document.get("env", {}), "env", {"shell", "variables"})
    if env.get("shell", "bash") != "bash":
        raise BuildspecError(f"env.shell is {env['shell']!r}, but the local AWS models only bash")
    phases = _mapping(document.get("phases"), "phases", PHASES)
    return Buildspec(
        phases={name: _phase(phases[name], f"phases.{name}") for name in PHASES if name in phases},
        variables={name: str(value) for name, value in _mapping(env.get("variables", {}), "env.variables").items()},
        artifacts=_artifacts(document["artifacts"]) if "artifacts" in document else None,
    )


def _phase(value: Any, where: str) -> Phase:
    members = _mapping(value, where, {"commands", "finally", "on-failure"})
    reaction = members.get("on-failure")
    if reaction not in (None, "ABORT", "CONTINUE"):
        raise BuildspecError(f"{where}.on-failure is {reaction!r}, but the local AWS models only ABORT and CONTINUE")
    return Phase(
        commands=_texts(members.get("commands", []), f"{where}.commands"),
        finally_commands=_texts(members.get("finally", []), f"{where}.finally"),
        abort=None if reaction is None else reaction == "ABORT",
    )


def _artifacts(value: Any) -> Artifacts:
    members = _mapping(value, "artifacts", {"base-directory", "files", "name"})
    return Artifacts(
        files=_texts(members.get("files"), "artifacts.files"),
        base_directory=str(members.get("base-directory", ".")),
        name=members.get("name"),
    )


def _mapping(value: Any, where: str, known: Collection[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BuildspecError(f"{where} is {value!r}, but must be a mapping")
    if known is not None and (foreign := [name for name in value if name not in known]):
        raise BuildspecError(
            f"{where} has {foreign[0]!r}, which the local AWS does not model; it models {', '.join(sorted(known))}"
        )
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BuildspecError(f"{where} is {value!r}, but must be a list of texts")
    return tuple(value)
