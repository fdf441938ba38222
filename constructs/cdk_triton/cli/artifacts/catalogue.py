"""The documents that list target models, as `fleet_index.py` and `catalogue.py` of `lambda/artifacts` write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cdk_triton.artifacts import layout
from cdk_triton.errors import StoreError

__all__ = ["CatalogueEntry", "Change", "PublishedVersion", "has_catalogue", "index_generation", "parse_entry"]

_INDEX_SCHEMAS = (1, 2)
_SCHEMA = 1


@dataclass(frozen=True)
class Change:
    """The author and the time of a change; CloudTrail has the caller of the `StartExecution` of `execution`."""

    at: datetime
    publisher: str
    execution: str


@dataclass(frozen=True)
class PublishedVersion:
    """A version of an ensemble.

    Attributes:
        target_model: what callers send as `TargetModel`.
        artifact_key: of the archive.
        live: the change that made it live most recently.
        repository: the name of the repository's directory.
        built: whether the archive was built, from sources that are kept beside it.
    """

    target_model: str
    artifact_key: str
    live: Change
    repository: str
    built: bool


@dataclass(frozen=True)
class CatalogueEntry:
    """A published ensemble.

    Attributes:
        name: of the `TritonMultiModel`.
        directory: the prefix that serves it.
        ensemble: the ensemble.
        current: the target model of callers; None if it is not live.
        versions: the versions that are listed, the one that went live most recently first.
        unpublished: the change that took it out of the catalogue; None if it is live.
    """

    name: str
    directory: str
    ensemble: str
    current: str | None
    versions: tuple[PublishedVersion, ...]
    unpublished: Change | None

    @property
    def changed(self) -> Change:
        """The last change."""
        return self.unpublished or self.versions[0].live

    @property
    def targets(self) -> frozenset[str]:
        """The target models of all versions."""
        return frozenset(version.target_model for version in self.versions)


def index_generation(index: Mapping[str, Any], part: str) -> dict[str, str]:
    """The target models of an index, by ensemble.

    Args:
        index: the document. From schema 2 on, a generation is a list, so that older versions of this command fail.
        part: `current` or `previous`.

    Raises:
        LookupError, TypeError, AttributeError: the document is not an index, or has another schema.
    """
    if index["schema"] not in _INDEX_SCHEMAS:
        raise TypeError(f"schema {index['schema']!r}")
    listed = index[part]
    pairs = ((each["ensemble"], each["target_model"]) for each in listed) if has_catalogue(index) else listed.items()
    return {str(ensemble): str(target) for ensemble, target in pairs}


def has_catalogue(index: Mapping[str, Any]) -> bool:
    """Whether the catalogue lists further target models."""
    return bool(index["schema"] == _INDEX_SCHEMAS[-1])


def parse_entry(place: layout.CatalogueObject, document: Mapping[str, Any], where: str) -> CatalogueEntry:
    """An ensemble from its document.

    Args:
        place: the ensemble, from the document's object key.
        document: the document.
        where: the object's URI, for the message.

    Raises:
        StoreError: the document is not a catalogue entry, or has another schema.
    """
    directory = layout.fleet_prefix(place.fleet, place.platform)
    try:
        if document["schema"] != _SCHEMA:
            raise TypeError(f"schema {document['schema']!r}")
        versions = tuple(_version(each) for each in document["versions"])
        gone, current = document["unpublished"], document["current"]
        unpublished = None if gone is None else _change(gone)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{where} is not a catalogue entry of this version of cdk-triton ({error!r}), so the target models "
            "that the entry keeps are not known; update cdk-triton, or restore an earlier version of the object"
        ) from error
    return CatalogueEntry(place.fleet, directory, place.ensemble, current, versions, unpublished)


def _version(document: Mapping[str, Any]) -> PublishedVersion:
    return PublishedVersion(
        str(document["target_model"]),
        str(document["artifact_key"]),
        _change(document["live"]),
        str(document["repository"]),
        bool(document.get("built")),
    )


def _change(document: Mapping[str, Any]) -> Change:
    at = datetime.fromisoformat(document["at"])
    return Change(at, str(document["publisher"]), str(document["execution"]))
