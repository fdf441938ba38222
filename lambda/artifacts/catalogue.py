"""The catalogue: which published ensembles are live, and what each of them was before.

Each ensemble has one document, `catalogue/<fleet>/<release>-<gpu>/<ensemble>.json`, outside the prefix that is served.
So no document grows with the number of ensembles, and publishers of different ensembles never conflict. A write
replaces exactly the document that was read.

The versions stand in the order in which they went live, the newest first. A version that goes live again moves to the
front. So the second version is always the one that was live before, as in `kubectl rollout undo`.

Step Functions may run a function twice for one state if the answer of the first run was lost, and the second run may
come after another execution has changed the ensemble. So each document lists the last executions that changed it, and
another change by a listed execution has no effect. Otherwise a repeated rollback would undo itself. An execution that
finds nothing to change is not listed, because it had no effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from protocol.catalogue import REPAIR, Change, Entry, Version
from protocol.documents import DocumentError, OtherVersionError
from protocol.layout import catalogue_key

from .failure import ArtifactError, NotYetError, of_other_version
from .storage import LostRaceError, Storage

__all__ = [
    "KEPT",
    "KEPT_EXECUTIONS",
    "forget",
    "publish",
    "read_entry",
    "roll_back",
    "unpublish",
    "update",
]

KEPT = 10
"""How many versions of an ensemble a document lists."""

KEPT_EXECUTIONS = 20
"""How many executions a document lists. A repeated run does harm only after as many other changes of the same
ensemble."""

_ATTEMPTS = 5


def publish(entry: Entry, version: Version) -> Entry:
    """Make a version live; the same entry if it is live already and has passed the same rehearsal."""
    if entry.has(version.live.execution):
        return entry
    if entry.current != version.target_model:
        return _live(entry, version)
    known, *others = entry.versions
    rehearsed = dataclasses.replace(known, rehearsal=version.rehearsal or known.rehearsal)
    return dataclasses.replace(entry, versions=(rehearsed, *others))


def roll_back(entry: Entry, change: Change, to: str | None = None) -> Entry:
    """Make an earlier version live.

    Args:
        entry: the ensemble.
        change: the author of the change.
        to: the target model of the version; by default the one that was live before, or the last one of an ensemble
            that is not live.

    Raises:
        ArtifactError: the document does not list the version.
    """
    if entry.has(change.execution) or (to is not None and to == entry.current):
        return entry
    others = [version for version in entry.versions if version.target_model != entry.current]
    found = others[:1] if to is None else [version for version in others if version.target_model == to]
    if not found:
        names = ", ".join(repr(version.target_model) for version in others)
        wanted = "an earlier version" if to is None else f"the version {to!r}"
        missing = f"the catalogue does not have {wanted} of the ensemble {entry.ensemble!r}"
        if not others:
            raise ArtifactError(f"{missing}: publish the ensemble")
        raise ArtifactError(f"{missing}, only {names}: name one of these, or publish the ensemble")
    return _live(entry, dataclasses.replace(found[0], live=change))


def unpublish(entry: Entry, change: Change) -> Entry:
    """Take an ensemble out of the catalogue; its versions stay listed, so that a rollback brings it back.

    Raises:
        ArtifactError: the ensemble was never published.
    """
    _require_published(entry)
    if entry.has(change.execution) or entry.current is None:
        return entry
    return _after(entry, change, entry.versions, unpublished=change)


def forget(entry: Entry, change: Change) -> Entry:
    """Take an ensemble out of the catalogue with all its versions, so that `gc` can delete their archives.

    Raises:
        ArtifactError: the ensemble was never published.
    """
    _require_published(entry)
    if entry.has(change.execution) or not entry.versions:
        return entry
    return _after(entry, change, (), unpublished=change)


def _require_published(entry: Entry) -> None:
    if not entry.was_published:
        raise ArtifactError(
            f"the ensemble {entry.ensemble!r} was never published; `cdk-triton fleet list` shows the published names"
        )


def read_entry(multi_model: str, platform: str, ensemble: str, storage: Storage) -> Entry:
    """An ensemble as the catalogue has it; without versions where it was never published.

    Raises:
        ArtifactError: the document was not written by this version of the library.
    """
    return _read(multi_model, platform, ensemble, storage)[0]


def update(multi_model: str, platform: str, ensemble: str, change: Callable[[Entry], Entry], storage: Storage) -> Entry:
    """Change an ensemble's document by read, modify and conditional write, and return what it is then.

    Args:
        multi_model: the name of the `TritonMultiModel` in the store.
        platform: its platform, as in `25.09-a10g`.
        ensemble: the ensemble.
        change: makes the new entry from the current one; may be called several times.
        storage: the store's bucket.

    Raises:
        NotYetError: other writers kept changing it.
        ArtifactError: the document was not written by this version of the library, or `change` raised it.
    """
    key = catalogue_key(multi_model, platform, ensemble)
    for _ in range(_ATTEMPTS):
        entry, etag = _read(multi_model, platform, ensemble, storage)
        changed = change(entry)
        if changed == entry:
            return entry
        try:
            storage.write(key, changed.text(), replacing=etag)
        except LostRaceError:  # also where the answer to our own write was lost
            continue
        return changed
    raise NotYetError(f"others keep writing s3://{storage.bucket}/{key}")


def _live(entry: Entry, version: Version) -> Entry:
    others = [other for other in entry.versions if other.target_model != version.target_model]
    return _after(entry, version.live, (version, *others)[:KEPT])


def _after(entry: Entry, by: Change, versions: tuple[Version, ...], unpublished: Change | None = None) -> Entry:
    executions = (by.execution, *entry.executions)[:KEPT_EXECUTIONS]
    return dataclasses.replace(entry, versions=versions, unpublished=unpublished, executions=executions)


def _read(multi_model: str, platform: str, ensemble: str, storage: Storage) -> tuple[Entry, str | None]:
    key = catalogue_key(multi_model, platform, ensemble)
    found = storage.read(key)
    if found is None:
        return Entry(multi_model, ensemble), None
    where = f"s3://{storage.bucket}/{key}"
    try:
        return Entry.of(found[0], multi_model, ensemble), found[1]
    except OtherVersionError as error:
        raise of_other_version(where, error, "publisher", "delete the object, and publish the ensemble") from error
    except DocumentError as error:
        raise ArtifactError(f"the entry {where} of the catalogue cannot be read, because {error}; {REPAIR}") from error
