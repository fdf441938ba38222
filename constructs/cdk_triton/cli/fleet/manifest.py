"""Manifests: which repository becomes which ensemble.

In a directory, each subdirectory is a repository, and its name is that of the ensemble. A CSV file has the columns
`ensemble` and `repository`, and a JSON file a list of objects with these two names. Paths are relative to the file.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdk_triton._wording import quoted
from cdk_triton.artifacts.names import check_name
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.model import CONFIG_NAME
from cdk_triton.triton.repository_settings import SETTINGS_NAME

__all__ = ["Listed", "read_manifest"]

_FIELDS = ("ensemble", "repository")
_WRITE = 'write [{"ensemble": "…", "repository": "…"}, …]'


@dataclass(frozen=True)
class Listed:
    """An ensemble to publish.

    Attributes:
        ensemble: the ensemble's name.
        directory: the directory of the ensemble's repository.
    """

    ensemble: str
    directory: Path


def read_manifest(path: Path) -> list[Listed]:
    """The ensembles of a manifest.

    Raises:
        ConfigurationError: the file cannot be read, is a model repository, or has corrupt lines; the message names all
            of these lines.
    """
    if is_directory := _is_directory(path):
        _require_repositories(path)
        found = _of_directory(path)
        unit = "directory"
    else:
        found, unit = _of_file(path)
    faults, ensembles, firsts = [], [], dict[str, str]()
    for place, row in found:
        try:
            each = _parsed(row, path if is_directory else path.parent)
            if each.ensemble in firsts:
                raise ConfigurationError(
                    f"{each.ensemble!r} is listed in {unit} {firsts[each.ensemble]} too; give each ensemble a name of "
                    "its own"
                )
        except ConfigurationError as error:
            faults.append(f"{unit} {place}: {error}")
            continue
        firsts[each.ensemble] = place
        ensembles.append(each)
    if faults:
        raise ConfigurationError(f"{path} has faults, so cdk-triton started nothing: {'; '.join(faults)}")
    if not ensembles:
        raise ConfigurationError(f"{path} lists no ensemble: give at least one")
    return ensembles


def _require_repositories(path: Path) -> None:
    """Reject a model repository, whose models would become ensembles.

    A repository may be a model itself. So a directory of models is a repository only if none of them has models below.

    Raises:
        ConfigurationError: the directory is a model repository.
    """
    below = _directories(path)
    if (path / SETTINGS_NAME).exists():
        reason = f"it contains {SETTINGS_NAME}"
    elif any(_is_model(inner) for each in below for inner in _directories(each)):
        return
    elif models := [each.name for each in below if _is_model(each)]:
        reason = f"its directory {models[0]!r} is a model"
    else:
        return
    raise ConfigurationError(
        f"{path} is a model repository, because {reason}, so each of its models would become an ensemble: give the "
        f"directory above {path}, or a CSV or JSON file that lists repositories"
    )


def _is_model(directory: Path) -> bool:
    """Whether a directory contains a configuration or a version."""
    return any(each.name.isdecimal() for each in _directories(directory)) or (directory / CONFIG_NAME).exists()


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a path that is too long, for example
        return False


def _directories(path: Path) -> list[Path]:
    """The directories in a directory that are not hidden, in order; the checks report one that cannot be read."""
    try:
        with os.scandir(path) as entries:
            names = sorted(each.name for each in entries if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []
    return [path / name for name in names]


def _of_directory(path: Path) -> list[tuple[str, Any]]:
    names = sorted(each.name for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
    return [(name, {"ensemble": name, "repository": name}) for name in names]


def _of_file(path: Path) -> tuple[list[tuple[str, Any]], str]:
    """The rows, each with its place, and the unit of the places."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}): give a manifest or a directory") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(f"{path} is not UTF-8 in line {line}: save it as UTF-8") from error
    if path.suffix == ".json":
        return list(_of_json(path, text)), "entry"
    return list(_of_csv(path, text)), "line"


def _of_csv(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = next(reader, [])
        if sorted(header) != sorted(_FIELDS):
            raise ConfigurationError(
                f"line 1 of {path} is {','.join(header)!r}: begin the file with the header 'ensemble,repository'"
            )
        for row in reader:
            if row:  # else an empty line
                yield str(reader.line_num), dict(zip(header, row, strict=len(row) == len(header))) | _surplus(row)
    except csv.Error as error:
        raise ConfigurationError(f"line {reader.line_num} of {path} is not CSV ({error}): correct the line") from error


def _surplus(row: list[str]) -> dict[str, str]:
    return {"more": row[len(_FIELDS)]} if len(row) > len(_FIELDS) else {}


def _of_json(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON ({error}): correct the file") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path} nests lists or objects too deeply: {_WRITE}") from error
    if not isinstance(rows, list):
        raise ConfigurationError(f"{path} is not a list: {_WRITE}")
    yield from ((str(number), row) for number, row in enumerate(rows, start=1))


def _parsed(row: Any, root: Path) -> Listed:
    if not isinstance(row, dict) or set(row) != set(_FIELDS) or not all(isinstance(each, str) for each in row.values()):
        raise ConfigurationError(
            "the entry does not have exactly the two fields 'ensemble' and 'repository', each with a text; write "
            "these two and nothing else"
        )
    directory = root / row["repository"]
    if not row["repository"] or not _is_directory(directory):
        raise ConfigurationError(
            f"the repository {quoted(row['repository'])} is not a directory below '{root}'; correct the path"
        )
    return Listed(check_name(row["ensemble"], "the ensemble"), directory)
