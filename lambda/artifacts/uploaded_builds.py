"""How an archive is built, as a caller of a publisher uploads it: `<artifact key>.json` of a request.

The build program reads a plan of several ensembles as a whole, or not at all. So an ensemble that it would reject must
not get into a plan with others. It is read here as strictly as `build_program/plan.py` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from .documents import parse_json
from .failure import ArtifactError
from .publication import Item

__all__ = ["MAX_BUILD_BYTES", "UploadedBuild", "parse_build"]

MAX_BUILD_BYTES = 4 * 1024**2
"""The size of a build. It names each file of a repository, so this is enough for about 25,000 files."""

_KEY = re.compile(r"[0-9a-f]{64}")


class UploadedBuild(NamedTuple):
    """A build.

    Attributes:
        recipes: the numbers of its recipes in the publisher's description.
        ensemble: its entry in the plan of a build.
    """

    recipes: tuple[int, ...]
    ensemble: Mapping[str, Any]


def parse_build(text: bytes, item: Item, name: str) -> UploadedBuild:
    """Read the build of an item.

    Args:
        text: the document.
        item: the item.
        name: the document's, for messages.

    Raises:
        ArtifactError: the document is not one that this version of the library takes, or that of another archive.
    """
    try:
        document = parse_json(text)
        recipes, ensemble = document["recipes"], document["ensemble"]
        if not isinstance(recipes, list) or not all(type(number) is int for number in recipes):
            raise TypeError(f"the field 'recipes' is {recipes!r}")
        if ensemble["artifact_key"] != item.artifact_key:
            raise ValueError(f"its key is {ensemble['artifact_key']!r}, but the request has {item.artifact_key}")
        return UploadedBuild(tuple(recipes), _ensemble(ensemble, item))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"the description of the build, {name}, cannot be read ({error!r}); publish with the publisher's version "
            "of cdk-triton"
        ) from error


def _ensemble(document: Mapping[str, Any], item: Item) -> dict[str, Any]:
    """The entry of a plan, whose name and sources are those of the item, whatever the caller has written."""
    for step in document["steps"]:
        if not (isinstance(step["recipe"], str) and isinstance(step["name"], str)):
            raise TypeError("a step has no recipe or no name")
    return {
        "repository": item.repository,
        "artifact_key": item.artifact_key,
        "sources": f"sources/{item.artifact_key}.tar.gz",
        "files": {_path(path): _sha256(sha256) for path, sha256 in document["files"].items()},
        "inputs": [
            {"path": _path(each["path"]), "sha256": _sha256(each["sha256"]), "to": _path(each["to"])}
            for each in document["inputs"]
        ],
        "steps": [dict(step) for step in document["steps"]],
        "remove": [_path(path) for path in document["remove"]],
    }


def _path(text: str) -> str:
    path = PurePosixPath(text)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in text or path.as_posix() != text:
        raise ValueError(f"{text!r} is not a relative path below the folder")
    return text


def _sha256(text: str) -> str:
    if not _KEY.fullmatch(text):
        raise ValueError(f"{text!r} is not a SHA-256")
    return text
