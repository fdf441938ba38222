"""The answers of `list`, `show` and `gc`, as JSON and as text. The names in JSON are a contract with other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.artifacts.contents import (
    Contents,
    StoredArtifact,
    StoredLock,
    read_contents,
    read_manifest,
)
from cdk_triton.cli.artifacts.garbage import Candidate, uses
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.cli.artifacts.sweep import Survey, Swept
from cdk_triton.cli.artifacts.text import SHORT, counted, size_of, table, time_of
from cdk_triton.cli.artifacts.users import Users, read_users

__all__ = [
    "Collection",
    "Listing",
    "as_json",
    "as_text",
    "collection_as_json",
    "collection_as_text",
    "read",
]


@dataclass(frozen=True)
class TargetModel:
    """A copy of an artifact that a multi-model endpoint serves; its name has the source key, not the artifact key.

    Attributes:
        name: the target model.
        directory: the prefix of the multi-model endpoint, as in `fleets/<name>/<platform>/`.
        state: `current` or `previous` according to the index or the catalogue; `dropped` if neither lists it, although
            callers can still send it; `unknown` if the catalogue's entry cannot be read.
        artifact_key: the artifact that it is a copy of; None if the object does not contain it.
        since: when it was stored, or when the current version of a published ensemble went live last.
        endpoints: the endpoints whose callers can send it.
    """

    name: str
    directory: str
    state: str
    artifact_key: str | None
    since: datetime
    endpoints: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """The answer of `list`.

    Attributes:
        bucket: the store's bucket.
        rows: each committed artifact with its manifest and its users.
        locks: the locks of builds that have not ended.
        unknown: sentences about users whose archives cannot be found, and about unreadable entries of the catalogue.
        target_models: the target models that callers of multi-model endpoints can send.
    """

    bucket: str
    rows: tuple[tuple[StoredArtifact, Mapping[str, Any], tuple[str, ...]], ...]
    locks: tuple[StoredLock, ...]
    unknown: tuple[str, ...]
    target_models: tuple[TargetModel, ...] = ()


@dataclass(frozen=True)
class Collection:
    """The answer of `gc`; `swept` is `None` if there was nothing to delete."""

    bucket: str
    seen: Survey
    days: int
    swept: Swept | None

    @property
    def chosen(self) -> tuple[Candidate, ...]:
        """The deleted objects, or those that `--yes` would delete."""
        return self.seen.free if self.swept is None else self.swept.deleted


def read(store: Store) -> Listing:
    """Read the bucket, its manifests and the region's models."""
    contents = read_contents(store)
    users = read_users(store.aws)
    used = uses(contents, users.references, store.bucket)
    committed = [each for each in contents.artifacts if each.manifest is not None]
    manifests = in_parallel(lambda artifact: read_manifest(store, artifact), committed)
    rows = [
        (artifact, manifest, used.get(artifact.files[0].key, ()))
        for artifact, manifest in zip(committed, manifests, strict=True)
    ]
    live = tuple(lock for lock in contents.locks if lock.is_live)
    unknown = (*users.unknown, *(each.fault for each in contents.unreadable))
    return Listing(store.bucket, tuple(rows), live, unknown, tuple(_target_models(contents, users, store.bucket)))


def _target_models(contents: Contents, users: Users, bucket: str) -> Iterator[TargetModel]:
    live = {
        (each.directory, each.entry.current): each.entry.changed.time
        for each in contents.catalogue
        if each.entry.current is not None
    }
    for copy in sorted(contents.copies, key=lambda each: (each.directory, each.target_model)):
        state = contents.state_of(copy)
        endpoints = users.endpoints_of(bucket, copy.file.key)
        since = live.get((copy.directory, copy.target_model), copy.file.modified)
        yield TargetModel(copy.target_model, copy.directory, state, copy.artifact_key, since, endpoints)


def as_json(listing: Listing) -> dict[str, Any]:
    """The listing for a program."""
    return {
        "bucket": listing.bucket,
        "artifacts": [
            {
                "repository": artifact.repository,
                "key": artifact.key,
                "platform": manifest.get("platform"),
                "size": sum(file.size for file in artifact.data),
                "committed": None if artifact.manifest is None else artifact.manifest.modified.isoformat(),
                "built": manifest.get("build") is not None,
                "promoted_from": manifest.get("promoted_from"),
                "in_use_by": list(users),
            }
            for artifact, manifest, users in listing.rows
        ],
        "builds": [
            {
                "key": lock.key,
                "repository": lock.document.get("repository"),
                "build": lock.document.get("build"),
                **{name: (lock.state or {}).get(name) for name in ("state", "kind", "link")},
                "since": (lock.state or {}).get("created_at"),
            }
            for lock in listing.locks
        ],
        "target_models": [
            {
                "target_model": each.name,
                "prefix": each.directory,
                "state": each.state,
                "key": each.artifact_key,
                "since": each.since.isoformat(),
                "endpoints": list(each.endpoints),
            }
            for each in listing.target_models
        ],
        "unknown": list(listing.unknown),
    }


def _made(manifest: Mapping[str, Any]) -> str:
    """How the archive came into this store."""
    if manifest.get("promoted_from") is not None:
        return "promoted"
    return "packed" if manifest.get("build") is None else "built"


def as_text(listing: Listing) -> Iterator[str]:
    """The listing for a person."""
    rows = [
        (
            artifact.repository,
            artifact.key[:SHORT],
            str(manifest.get("platform")),
            size_of(sum(file.size for file in artifact.data)) if artifact.data else "missing",
            "" if artifact.manifest is None else time_of(artifact.manifest.modified),
            _made(manifest),
            ", ".join(users) or "nobody",
        )
        for artifact, manifest, users in listing.rows
    ]
    if rows:
        yield from table(("REPOSITORY", "KEY", "PLATFORM", "SIZE", "COMMITTED (UTC)", "MADE", "IN USE BY"), rows)
    if listing.target_models:
        targets = [
            (
                each.name,
                (each.artifact_key or "unknown")[:SHORT],
                each.state,
                time_of(each.since),
                ", ".join(each.endpoints) or "no endpoint",
                each.directory,
            )
            for each in listing.target_models
        ]
        yield ""
        yield from table(("TARGET MODEL", "KEY", "STATE", "SINCE (UTC)", "ENDPOINT", "PREFIX"), targets)
        if not listing.locks:
            yield ""
    if listing.locks:
        builds = [
            (
                str(lock.document.get("repository")),
                lock.key[:SHORT],
                str((lock.state or {}).get("state", "unknown")),
                "" if (since := _since(lock)) is None else time_of(since),
                str((lock.state or {}).get("kind", "")),
                str(lock.document.get("build")),
            )
            for lock in listing.locks
        ]
        yield ""
        yield from table(("BUILDING", "KEY", "STATE", "SINCE (UTC)", "BUILDER", "BUILD"), builds)
        yield ""
    size = sum(file.size for artifact, _, _ in listing.rows for file in artifact.data)
    yield f"s3://{listing.bucket}: {counted(len(rows), 'artifact')}, {size_of(size)}"
    yield from listing.unknown


def _since(lock: StoredLock) -> datetime | None:
    created = (lock.state or {}).get("created_at")
    return datetime.fromtimestamp(created, UTC) if isinstance(created, int | float) else None


def collection_as_json(answer: Collection) -> dict[str, Any]:
    """The findings of `gc`, for a program."""
    chosen = answer.chosen
    return {
        "bucket": answer.bucket,
        "older_than_days": answer.days,
        "deleted": answer.swept is not None,
        "record": None if answer.swept is None else answer.swept.record,
        "garbage": [
            {"name": each.name, "size": each.size, "objects": [file.key for file in each.files]} for each in chosen
        ],
        "kept": sum(_kept(answer)),
        "obstacles": list(answer.seen.obstacles),
    }


def collection_as_text(answer: Collection) -> Iterator[str]:
    """The findings of `gc`, for a person."""
    chosen = answer.chosen
    if chosen:
        rows = [(each.name, size_of(each.size), time_of(max(file.modified for file in each.files))) for each in chosen]
        yield from table(("GARBAGE" if answer.swept is None else "DELETED", "SIZE", "STORED (UTC)"), rows)
    size = size_of(sum(each.size for each in chosen))
    successors, are = ("successor", "is") if len(chosen) == 1 else ("successors", "are")
    age = f"older than {counted(answer.days, 'day')}"
    what = f"{counted(len(chosen), 'unused archive')} ({size}) {age}, whose {successors} (if any) {are} {age}, too"
    artifacts, copies = _kept(answer)
    kept = f"kept: {counted(artifacts, 'artifact')} and {counted(copies, 'multi-model archive')}"
    if answer.swept is None:
        yield f"s3://{answer.bucket}: {what}; {kept}"
        yield from (f"nothing could be deleted now: {reason}" for reason in answer.seen.obstacles)
        if chosen:
            yield "nothing was deleted; to delete, add --yes"
        return
    yield f"s3://{answer.bucket}: deleted {what}; {kept}"
    if chosen:
        yield (
            "The bucket is versioned: a deletion is a marker on top of the last version, which expires 30 days later, "
            "is paid for until then, and comes back when the marker is removed."
        )
        yield f"The record of this deletion is s3://{answer.bucket}/{answer.swept.record}."


def _kept(answer: Collection) -> tuple[int, int]:
    """The numbers of artifacts and of multi-model archives that are kept."""
    chosen = answer.chosen
    artifacts = sum(isinstance(each.item, StoredArtifact) for each in chosen)
    contents = answer.seen.contents
    return len(contents.artifacts) - artifacts, len(contents.copies) - (len(chosen) - artifacts)
