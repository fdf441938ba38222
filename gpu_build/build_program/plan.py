"""Reads `plan.json` of schema 1, the program's input, which the custom resource's handler wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from .files import is_safe_path

__all__ = ["BuildPlan", "Ensemble", "Input", "PlanError", "RehearsalEntry", "read_plan"]

_SCHEMA = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLATFORM = {"image", "release", "gpu", "compute_capability", "tensorrt", "dali", "python"}


class PlanError(Exception):
    """`plan.json` cannot be followed; the text is one sentence."""


class Input(NamedTuple):
    """A file of its own that goes into the repository at `to`."""

    path: str
    sha256: str
    to: str


class Ensemble(NamedTuple):
    """One repository to build.

    Attributes:
        repository: its name.
        artifact_key: the name of its directory in the output.
        sources: the archive of its sources, relative to the input folder.
        files: every file of that archive with its SHA-256.
        inputs: further files.
        steps: the steps of the recipes, in order of execution; each has a `recipe` and a `name`.
        remove: files that only the build reads.
    """

    repository: str
    artifact_key: str
    sources: str
    files: dict[str, str]
    inputs: tuple[Input, ...]
    steps: tuple[dict[str, Any], ...]
    remove: tuple[str, ...]


class RehearsalEntry(NamedTuple):
    """One archive to rehearse: an entry of `plan.json`.

    Attributes:
        key: the name of its directory in the output.
        repository: the name of its repository.
        artifact_key: the key of the archive.
        archive: the archive, relative to the input folder; None for one that this job builds.
        golden: the ZIP file of the bodies of requests and expected answers, relative to the input folder.
        document: see `rehearsal.document`.
    """

    key: str
    repository: str
    artifact_key: str
    archive: str | None
    golden: str
    document: Mapping[str, Any]


class BuildPlan(NamedTuple):
    """The ensembles to build, the archives to rehearse, the platform that they are for, and the deadline."""

    build: str
    deadline_seconds: float
    platform: dict[str, str | None]
    ensembles: tuple[Ensemble, ...]
    rehearsals: tuple[RehearsalEntry, ...] = ()


def read_plan(file: Path) -> BuildPlan:
    """Read and validate a `plan.json`.

    Raises:
        PlanError: the document is not a `plan.json` of this schema.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"the build plan {file.name} cannot be read: {error.strerror}; deploy again") from error
    except ValueError as error:
        raise PlanError(f"the build plan {file.name} is not JSON: {error}; deploy again") from error
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise PlanError(
            f"the build plan has schema {found!r}, but this build program reads schema {_SCHEMA}, because the plan and "
            "the program are from different versions of cdk-triton: deploy both with the same version"
        )
    try:
        return _plan(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PlanError(f"the build plan is damaged ({type(error).__name__}: {error}); deploy again") from error


def _plan(document: Mapping[str, Any]) -> BuildPlan:
    platform = document["platform"]
    missing = _PLATFORM - set(platform)
    if missing:
        raise ValueError(f"its platform lacks {', '.join(sorted(missing))}")
    ensembles = tuple(map(_ensemble, document["ensembles"]))
    rehearsals = tuple(map(_rehearsal, document.get("rehearsals", [])))
    keys = [*(ensemble.artifact_key for ensemble in ensembles), *(rehearsal.key for rehearsal in rehearsals)]
    if not keys or len(set(keys)) != len(keys):
        raise ValueError("it has neither ensembles nor rehearsals, or has one twice")
    deadline = float(document["deadline_seconds"])
    return BuildPlan(str(document["build"]), deadline, dict(platform), ensembles, rehearsals)


def _ensemble(document: Mapping[str, Any]) -> Ensemble:
    steps = tuple(dict(step) for step in document["steps"])
    for step in steps:
        if not (isinstance(step["recipe"], str) and isinstance(step["name"], str)):
            raise ValueError("a step has no recipe or no name")
    return Ensemble(
        repository=str(document["repository"]),
        artifact_key=_sha256(document["artifact_key"]),
        sources=_path(document["sources"]),
        files={_path(path): _sha256(sha256) for path, sha256 in document["files"].items()},
        inputs=tuple(
            Input(_path(entry["path"]), _sha256(entry["sha256"]), _path(entry["to"])) for entry in document["inputs"]
        ),
        steps=steps,
        remove=tuple(map(_path, document["remove"])),
    )


def _rehearsal(document: Mapping[str, Any]) -> RehearsalEntry:
    archive = document["archive"]
    return RehearsalEntry(
        key=_sha256(document["key"]),
        repository=str(document["repository"]),
        artifact_key=_sha256(document["artifact_key"]),
        archive=None if archive is None else _path(archive),
        golden=_path(document["golden"]),
        document=dict(document["document"]),
    )


def _path(text: str) -> str:
    if not is_safe_path(text):
        raise ValueError(f"{text!r} is not a relative path below the folder")
    return text


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        raise ValueError(f"{text!r} is not a SHA-256")
    return text
