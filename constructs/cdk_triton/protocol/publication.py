"""A publication: the request of a caller, with an item for each ensemble, and how archives are built and rehearsed.

The command writes all of it, and a publisher's functions read it. They verify everything: a name that cannot be part of
an object key is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import PurePosixPath
from typing import Any

from . import layout
from .documents import DocumentError, faults_translated, parse_json, parse_object, require_schema
from .keys import rehearsal_key

__all__ = [
    "MAX_ENTRIES",
    "MAX_ITEMS",
    "MAX_REQUEST_BYTES",
    "Item",
    "UploadedBuild",
    "UploadedRehearsal",
    "parse_request",
    "request_text",
]

SCHEMA = 1
ACTIONS = ("publish", "roll_back", "unpublish", "forget")

MAX_ITEMS = 100_000
"""More exceed the time of `count` and the memory of the functions (docs/many_ensembles.md)."""

MAX_REQUEST_BYTES = 32 * 1024**2
"""The size of a request with `MAX_ITEMS` items and names of 40 characters."""

MAX_VALUES = 1_000_000
"""Objects, lists and commas of `MAX_ITEMS` items. Small values take 20 times their text in memory."""

MAX_ENTRIES = 100_000
"""The files and directories of an archive."""

MAX_LOAD_SECONDS = 3600
"""The largest start-up timeout of an endpoint (`ContainerStartupHealthCheckTimeoutInSeconds` of the API reference)."""

_KEY = re.compile(r"[0-9a-f]{64}")
_KEY_OR_NONE = re.compile(r"(?:[0-9a-f]{64})?")
_EMPTY = re.compile("")
_PLATFORM = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,199})?")
_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_PUBLISHED = {
    "repository": layout.NAME,
    "source_key": _KEY,
    "artifact_key": _KEY,
    "from_platform": _PLATFORM,
    "rehearsal": _KEY_OR_NONE,
}
"""The fields of an item that is published, which are empty in other items."""

_OF_MACHINE = {"is_there", "rejected"}
"""The fields of an item that a request does not have."""


@dataclass(frozen=True)
class Item:
    """One ensemble to change.

    Attributes:
        ensemble: its name.
        action: `publish`, `roll_back`, `unpublish` or `forget`.
        repository: the name of the repository's directory; empty unless it is published.
        source_key: of the repository; empty unless it is published.
        artifact_key: of the archive; empty unless it is published.
        to: the target model to roll back to; None for the one that was live before.
        built: whether the archive is built from the sources that were uploaded.
        from_platform: the platform, as in `25.09-a10g`, for which the same target model is published already. Its
            archive or sources are read instead of an upload; empty if there is an upload.
        rehearsal: the key of the rehearsal that the archive has to pass before it is served; empty without one.
        is_there: whether the target model was served already when the machine started.
        rejected: the reason why it cannot be changed, or None.
    """

    ensemble: str
    action: str
    repository: str = ""
    source_key: str = ""
    artifact_key: str = ""
    to: str | None = None
    built: bool = False
    from_platform: str = ""
    rehearsal: str = ""
    is_there: bool = False
    rejected: str | None = None

    @property
    def needs_job(self) -> bool:
        """Whether a job makes the archive, or rehearses it."""
        return self.built or self.is_rehearsed

    @property
    def is_rehearsed(self) -> bool:
        """Whether golden requests were uploaded."""
        return self.rehearsal != ""

    @property
    def waits_for_job(self) -> bool:
        """Whether a job may be left to do; golden requests can be new for an archive that is served already."""
        return self.is_rehearsed or (self.built and not self.is_there)

    @property
    def target_model(self) -> str:
        """The name that callers of the published version send."""
        return layout.target_model(self.ensemble, self.source_key)

    def document(self) -> dict[str, Any]:
        """The item as JSON, without fields that have their default."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Item:
        """Read what `document` wrote.

        Raises:
            DocumentError: a field is missing, unknown, or cannot be part of an object key.
        """
        try:
            item = cls(**document)
        except TypeError as error:
            raise DocumentError(f"the item {document!r} is invalid ({error})") from error
        if item.action not in ACTIONS:
            raise DocumentError(f"the action of {item.ensemble!r} is {item.action!r}, not one of {', '.join(ACTIONS)}")
        forms = {"ensemble": layout.NAME}
        forms |= _PUBLISHED if item.action == "publish" else dict.fromkeys(_PUBLISHED, _EMPTY)
        if item.to is not None:  # an item is the input of a state, so each field has a limit
            forms["to"] = _TARGET if item.action == "roll_back" else _EMPTY
        for name, form in forms.items():
            value = getattr(item, name)
            if not isinstance(value, str) or not form.fullmatch(value):
                raise DocumentError(f"the field {name!r} of the ensemble {item.ensemble!r} is invalid: {value!r:.300}")
        if not isinstance(item.built, bool) or (item.built and item.action != "publish"):
            raise DocumentError(
                f"the field 'built' of the ensemble {item.ensemble!r} is invalid for the action {item.action!r}: "
                f"{item.built!r}"
            )
        return item


def request_text(items: Iterable[Item]) -> bytes:
    """A request as JSON."""
    return json.dumps({"schema": SCHEMA, "items": [item.document() for item in items]}).encode()


def parse_request(text: bytes) -> list[Item]:
    """Read what `request_text` wrote.

    Raises:
        OtherVersionError: another version of the library wrote the request.
        DocumentError: the text is not a request.
    """
    values = sum(text.count(sign) for sign in (b"{", b"[", b","))
    if values > MAX_VALUES:
        raise DocumentError(f"it has {values:,} values, but at most {MAX_VALUES:,} are allowed")
    try:
        document = parse_json(text)
        require_schema(document, SCHEMA)
        items = document["items"]
    except (ValueError, LookupError, TypeError) as error:
        raise DocumentError(f"it is not a JSON object with schema and items ({error!r})") from error
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_ITEMS:
        found = f"{len(items)} items" if isinstance(items, list) else f"{items!r:.300} as its field 'items'"
        raise DocumentError(f"it has {found}, but a request needs a list of 1 to {MAX_ITEMS:,} items")
    allowed = {each.name for each in fields(Item)} - _OF_MACHINE
    if any(not isinstance(each, dict) or each.keys() - allowed for each in items):
        raise DocumentError(f"an item has a field that is not one of {', '.join(sorted(allowed))}")
    parsed = [Item.parse(each) for each in items]
    names = {item.ensemble for item in parsed}
    if len(names) < len(parsed):
        raise DocumentError("it names an ensemble twice")
    return parsed


@dataclass(frozen=True)
class UploadedBuild:
    """How an archive is built, as a caller uploads it: `<artifact key>.json` of a request.

    Attributes:
        recipes: the numbers of its recipes in the publisher's description.
        ensemble: its entry in the build program's `plan.json`.
    """

    recipes: tuple[int, ...]
    ensemble: Mapping[str, Any]

    def text(self) -> bytes:
        """The build as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, text: bytes, item: Item) -> UploadedBuild:
        """Read the build of an item.

        The build program reads a `plan.json` of several ensembles as a whole, or not at all. So an ensemble that it
        would reject must not get into one with others, and is read here as strictly as `build_program/plan.py` reads
        it.

        Raises:
            DocumentError: the text is not a build, or that of another archive.
        """
        with faults_translated():
            document = parse_object(text)
            recipes, ensemble = document["recipes"], document["ensemble"]
            if not isinstance(recipes, list) or not all(type(number) is int for number in recipes):
                raise TypeError(f"the field 'recipes' is {recipes!r}")
            if ensemble["artifact_key"] != item.artifact_key:
                raise ValueError(f"its key is {ensemble['artifact_key']!r}, but the request has {item.artifact_key}")
            return cls(tuple(recipes), _ensemble(ensemble, item))


@dataclass(frozen=True)
class UploadedRehearsal:
    """How an archive is rehearsed, as a caller uploads it: `<rehearsal key>.rehearsal.json` of a request.

    Attributes:
        golden: the SHA-256 of the ZIP file of golden requests, which names its upload.
        document: what the build program reads about the rehearsal.
    """

    golden: str
    document: Mapping[str, Any]

    def key(self, *, artifact_key: str, image: str, instance_type: str, program: int) -> str:
        """The key of the rehearsal of an archive; see `keys.rehearsal_key`."""
        return rehearsal_key(
            artifact_key=artifact_key,
            image=image,
            instance_type=instance_type,
            golden=self.golden,
            document=self.document,
            program=program,
        )

    def text(self) -> bytes:
        """The rehearsal as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, text: bytes, item: Item) -> UploadedRehearsal:
        """Read the rehearsal of an item, with the repository of the item, whatever the caller has written.

        What the job of several rehearsals depends on is checked here. The build program rejects what else it cannot
        read, as the failure of this rehearsal alone.

        Raises:
            DocumentError: the text is not a rehearsal.
        """
        with faults_translated():
            found = parse_object(text)
            document = found["document"]
            if document["mode"] != "multi":
                raise ValueError(f"the mode is {document['mode']!r:.100}, not 'multi'")
            timeout = document["load_timeout_seconds"]
            if type(timeout) not in (int, float) or not 0 < timeout <= MAX_LOAD_SECONDS:
                raise ValueError(f"load_timeout_seconds is {timeout!r:.100}, not a number from 0 to {MAX_LOAD_SECONDS}")
            for row in document["requests"]:
                for name in (row["body"], *(() if row["expected"] is None else (row["expected"],))):
                    _path(name)
            fixed = {"repository": item.repository, "keep_answers": False}
            return cls(_sha256(found["golden"]), {**document, **fixed})


def _ensemble(document: Mapping[str, Any], item: Item) -> dict[str, Any]:
    """The entry of `plan.json`, with the name and the sources of the item, whatever the caller has written."""
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
