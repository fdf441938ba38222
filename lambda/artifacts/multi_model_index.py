"""The index of a multi-model endpoint: its current and previous target models.

Garbage collection needs it, because the Model of a multi-model endpoint names only a prefix. An archive is free if
neither a Model nor an index refers to it. The index keeps one previous generation, so that callers of its target models
survive an update and its rollback. The last writer wins; a late or repeated event leaves both generations listed.

From the first published ensemble on, the index permanently records that the catalogue lists further target models
(`catalogue`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from protocol.documents import DocumentError, OtherVersionError
from protocol.index import Index
from protocol.layout import catalogue_key, catalogue_prefix, parse_fleet_object
from protocol.plan import ServedArchives

from .catalogue import read_entry
from .failure import ArtifactError, NotYetError, of_other_version
from .storage import LostRaceError, Storage

__all__ = ["advance", "open_catalogue", "read_index", "write_index"]

_ATTEMPTS = 5


def advance(index: Index | None, served: ServedArchives) -> Index:
    """The index with `served` as the current generation; the same index if it is that already."""
    if index is None:
        return Index(served.name, served.target_models)
    if index.current == served.target_models:
        return index
    return Index(served.name, served.target_models, index.current, index.has_catalogue)


def write_index(served: ServedArchives, storage: Storage) -> None:
    """Make the build plan's target models current in the index, by read, modify and conditional write.

    Raises:
        NotYetError: other writers kept changing it.
        ArtifactError: the object is not an index of this version of the library, or an ensemble of the build plan is
            also published.
    """

    def change(index: Index | None) -> Index:
        if index is not None and index.has_catalogue:
            _reject_published(served, storage)
        return advance(index, served)

    _update(served.index, change, storage)


def open_catalogue(name: str, key: str, storage: Storage) -> Index:
    """Record in an index that there is a catalogue, and return it. This comes before any entry of the catalogue.

    Args:
        name: the name of the `TritonMultiModel`, for a new index if the stack has no ensemble.
        key: the index's object key.
        storage: the store's bucket.

    Raises:
        NotYetError: other writers kept changing it.
        ArtifactError: the object is not an index of this version of the library.
    """

    def change(index: Index | None) -> Index:
        return dataclasses.replace(Index(name) if index is None else index, has_catalogue=True)

    return _update(key, change, storage)


def read_index(key: str, storage: Storage) -> Index | None:
    """An index; None if no deployment has written it yet.

    Raises:
        ArtifactError: the object is not an index of this version of the library.
    """
    return _read(key, storage)[0]


def _read(key: str, storage: Storage) -> tuple[Index | None, str | None]:
    found = storage.read(key)
    return (None, None) if found is None else (_parse(found[0], f"s3://{storage.bucket}/{key}"), found[1])


def _update(key: str, change: Callable[[Index | None], Index], storage: Storage) -> Index:
    for _ in range(_ATTEMPTS):
        index, etag = _read(key, storage)
        wanted = change(index)
        if wanted == index:
            return wanted
        try:
            storage.write(key, wanted.text(), replacing=etag)
        except LostRaceError:
            continue
        return wanted
    raise NotYetError(f"other deployments keep writing s3://{storage.bucket}/{key}")


def _reject_published(served: ServedArchives, storage: Storage) -> None:
    """If a published and a stack-deployed ensemble had the same name, callers would get one or the other."""
    place = parse_fleet_object(served.index)
    assert place is not None  # as the synthesis names it
    name, platform = place.fleet, place.platform
    known = set(storage.keys(catalogue_prefix(name, platform)))
    for ensemble in served.target_models:
        if (
            catalogue_key(name, platform, ensemble) in known
            and read_entry(name, platform, ensemble, storage).current is not None
        ):
            raise ArtifactError(
                f"the stack has an ensemble {ensemble!r}, but an ensemble of this name is already published: rename "
                f"the stack's ensemble, or run `cdk-triton fleet unpublish {ensemble} --fleet STACK/FLEET` and deploy "
                "again; if the publisher was removed, first deploy the stack with add_publisher() and without the "
                "ensemble"
            )


def _parse(text: bytes, where: str) -> Index:
    try:
        return Index.parse(text)
    except OtherVersionError as error:
        raise of_other_version(where, error, "artifact store", "delete the object and deploy again") from error
    except DocumentError as error:
        raise ArtifactError(
            f"{where} is not an index of cdk-triton (a JSON object with 'schema' and 'current'); delete the object and "
            "deploy again"
        ) from error
