"""The catalogue: which published ensembles are live, and what each of them was before.

Each ensemble has one document, `catalogue/<fleet>/<release>-<gpu>/<ensemble>.json`, outside the prefix that is served.
So nothing grows with the number of ensembles, and two publishers of different ensembles never meet. A document is
written only in place of exactly the one that was read.

The versions stand in the order in which they went live, the newest first. A version that goes live again moves to the
front. So the second version is always the one that was live before, as in `kubectl rollout undo`.

A function of Step Functions may run twice for one state, because the answer of the first run was lost. The second run
may be late, after another execution has changed the ensemble. So each document lists the last executions that changed
it, and a change of an execution that is listed does nothing. This makes a rollback repeatable, which would otherwise go
back and forth. A run that finds nothing to change is not listed, because nobody has seen an effect of it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .failure import ArtifactError, NotYetError
from .storage import LostRaceError, Storage

__all__ = [
    "KEPT",
    "KEPT_EXECUTIONS",
    "Change",
    "Entry",
    "Version",
    "catalogue_key",
    "catalogue_prefix",
    "forget",
    "publish",
    "read_entry",
    "roll_back",
    "unpublish",
    "update",
]

SCHEMA = 1
KEPT = 10
"""How many versions of an ensemble a document lists."""

KEPT_EXECUTIONS = 20
"""How many executions a document lists. A repetition does harm only if it comes after as many other changes of the
same ensemble, or after fewer of a document that an earlier version wrote."""

_ATTEMPTS = 5


@dataclass(frozen=True)
class Change:
    """The author and the time of a change.

    Attributes:
        at: the time, in ISO 8601 and UTC.
        publisher: the `aws:userid` of the caller that wrote the request. Another one may have started the execution.
        execution: the ARN of the execution that makes the change; AWS CloudTrail has the caller that started it.
    """

    at: str
    publisher: str
    execution: str


@dataclass(frozen=True)
class Version:
    """One version of an ensemble.

    Attributes:
        target_model: what callers send as `TargetModel`.
        artifact_key: of the archive that is served.
        source_key: of what it is made from, whatever serves it.
        repository: the name of the repository's directory.
        live: who made it live most recently, and when.
        built: whether the archive was built, from sources that are kept beside it.
    """

    target_model: str
    artifact_key: str
    source_key: str
    repository: str
    live: Change
    built: bool = False


@dataclass(frozen=True)
class Entry:
    """A published ensemble.

    Attributes:
        fleet: the name of the `TritonMultiModel` in the store.
        ensemble: its name.
        versions: the last `KEPT` versions, that which went live most recently first; none of a forgotten ensemble.
        unpublished: who took it out of the catalogue; None while it is live.
        executions: the ARNs of the last `KEPT_EXECUTIONS` executions that changed it, the newest first.
    """

    fleet: str
    ensemble: str
    versions: tuple[Version, ...] = ()
    unpublished: Change | None = None
    executions: tuple[str, ...] = ()

    @property
    def was_published(self) -> bool:
        """Whether the ensemble was live at any time."""
        return bool(self.versions) or self.unpublished is not None

    @property
    def current(self) -> str | None:
        """The target model of callers; None if the ensemble is not live."""
        return None if self.unpublished is not None or not self.versions else self.versions[0].target_model

    def has(self, execution: str) -> bool:
        """Whether an execution has made its change already."""
        return execution in self.executions

    def after(self, by: Change, versions: tuple[Version, ...], unpublished: Change | None = None) -> Entry:
        """The entry after a change."""
        executions = (by.execution, *self.executions)[:KEPT_EXECUTIONS]
        return Entry(self.fleet, self.ensemble, versions, unpublished, executions)

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        return {"schema": SCHEMA, "current": self.current, **dataclasses.asdict(self)}


def catalogue_key(fleet: str, platform: str, ensemble: str) -> str:
    """The object key of an ensemble's document."""
    return f"{catalogue_prefix(fleet, platform)}{ensemble}.json"


def catalogue_prefix(fleet: str, platform: str) -> str:
    """The prefix of the documents of a platform."""
    return f"catalogue/{fleet}/{platform}/"


def publish(entry: Entry, version: Version) -> Entry:
    """Make a version live; the same entry if it is live already."""
    if entry.has(version.live.execution) or entry.current == version.target_model:
        return entry
    return _live(entry, version)


def roll_back(entry: Entry, change: Change, to: str | None = None) -> Entry:
    """Make an earlier version live.

    Args:
        entry: the ensemble.
        change: who does so.
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
    return entry.after(change, entry.versions, unpublished=change)


def forget(entry: Entry, change: Change) -> Entry:
    """Take an ensemble out of the catalogue with all its versions, so that `gc` may delete their archives.

    Raises:
        ArtifactError: the ensemble was never published.
    """
    _require_published(entry)
    if entry.has(change.execution) or not entry.versions:
        return entry
    return entry.after(change, (), unpublished=change)


def _require_published(entry: Entry) -> None:
    if not entry.was_published:
        raise ArtifactError(
            f"the ensemble {entry.ensemble!r} was never published; `cdk-triton fleet list` shows the published names"
        )


def read_entry(fleet: str, platform: str, ensemble: str, storage: Storage) -> Entry:
    """An ensemble as the catalogue has it; without versions where it was never published.

    Raises:
        ArtifactError: the document was not written by this version of the library.
    """
    return _read(fleet, platform, ensemble, storage)[0]


def update(fleet: str, platform: str, ensemble: str, change: Callable[[Entry], Entry], storage: Storage) -> Entry:
    """Change an ensemble's document by read, modify and conditional write, and return what it is then.

    Args:
        fleet: the name of the `TritonMultiModel` in the store.
        platform: its platform, as in `25.09-a10g`.
        ensemble: the ensemble.
        change: makes the new entry of the one that is there; may be called several times.
        storage: the store's bucket.

    Raises:
        NotYetError: others keep writing it.
        ArtifactError: the document was not written by this version of the library, or `change` raised it.
    """
    key = catalogue_key(fleet, platform, ensemble)
    for _ in range(_ATTEMPTS):
        entry, etag = _read(fleet, platform, ensemble, storage)
        changed = change(entry)
        if changed == entry:
            return entry
        try:
            storage.write(key, json.dumps(changed.document(), indent=2).encode(), replacing=etag)
        except LostRaceError:  # also where the answer to our own write was lost
            continue
        return changed
    raise NotYetError(f"others keep writing s3://{storage.bucket}/{key}")


def _live(entry: Entry, version: Version) -> Entry:
    others = [other for other in entry.versions if other.target_model != version.target_model]
    return entry.after(version.live, (version, *others)[:KEPT])


def _read(fleet: str, platform: str, ensemble: str, storage: Storage) -> tuple[Entry, str | None]:
    key = catalogue_key(fleet, platform, ensemble)
    found = storage.read(key)
    if found is None:
        return Entry(fleet, ensemble), None
    where = f"s3://{storage.bucket}/{key}"
    try:
        document = json.loads(found[0])
        schema = document["schema"]
        if schema != SCHEMA:
            raise ArtifactError(
                f"{where} has schema {schema!r}, but this publisher writes schema {SCHEMA}; deploy the stack of the "
                "publisher with a newer cdk-triton"
            )
        versions = tuple(Version(**{**version, "live": Change(**version["live"])}) for version in document["versions"])
        unpublished = None if document["unpublished"] is None else Change(**document["unpublished"])
        executions = document.get("executions")
        if executions is None:  # an earlier version wrote it
            changes = [*([] if unpublished is None else [unpublished]), *(version.live for version in versions)]
            executions = [change.execution for change in changes]
        entry = Entry(fleet, ensemble, versions, unpublished, tuple(executions))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{where} is not an entry of cdk-triton's catalogue ({error!r}); restore an earlier version of the object"
        ) from error
    return entry, found[1]
