"""The objects that can be deleted, by a pure rule over the listings; nothing here calls AWS.

The rule keeps an object if one of these holds:

* a model refers to it: by its very key, or by a prefix of it;
* the index of a `TritonMultiModel` lists it as current or previous. If a multi-model endpoint's prefix has an index,
  the index decides which part of the prefix is used; a prefix without one is used as a whole;
* the catalogue lists it as a version of an ensemble. `fleet unpublish --forget` takes versions from the catalogue;
* it is the artifact that a kept multi-model archive was copied from: another deployment would have to build it again;
* it has the lock of a build or a rehearsal that has not ended;
* a part of it or of its successor is younger than the grace period. The successor is the object of the same repository,
  or of the same ensemble of a multi-model endpoint, that was stored next. An object is not replaced before its
  successor is stored;
* it is one of the newest of its repository or ensemble, if the user sets how many of these are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cdk_triton.cli.artifacts.contents import Contents, MultiModelArchive, StoredArtifact, StoredFile
from cdk_triton.cli.artifacts.users import ModelReference
from cdk_triton.protocol.layout import artifact_prefix

__all__ = ["DEFAULT_GRACE", "Candidate", "candidates", "uses"]

DEFAULT_GRACE = timedelta(days=30)
"""As long as the bucket keeps deleted versions. An artifact that was built before its deployment, or that an older
commit of an app needs, has no user yet or any more. It is not worth a second build."""


@dataclass(frozen=True)
class Candidate:
    """Objects that are deleted together: an artifact with its manifest, or one multi-model archive."""

    item: StoredArtifact | MultiModelArchive

    @property
    def name(self) -> str:
        """Its name in the text output."""
        if isinstance(self.item, StoredArtifact):
            return artifact_prefix(self.item.repository, self.item.key).removesuffix("/")
        return self.item.file.key

    @property
    def line(self) -> str:
        """The repository, or the ensemble of a multi-model endpoint, of which it is a version."""
        if isinstance(self.item, StoredArtifact):
            return artifact_prefix(self.item.repository, "").rstrip("/")
        ensemble = self.item.target_model.rpartition("-")[0]
        return f"{self.item.directory}{ensemble}"

    @property
    def is_complete(self) -> bool:
        """Whether it can be served. A crash may leave an artifact without its manifest, which replaces nothing."""
        return isinstance(self.item, MultiModelArchive) or self.item.manifest is not None

    @property
    def stored(self) -> datetime:
        """When its youngest part was stored."""
        return max(file.modified for file in self.files)

    @property
    def manifest(self) -> StoredFile | None:
        """The object that is deleted first."""
        return self.item.manifest if isinstance(self.item, StoredArtifact) else None

    @property
    def data(self) -> tuple[StoredFile, ...]:
        """The objects that are deleted after the manifest."""
        return tuple(file for file in self.files if file != self.manifest)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Its objects."""
        return self.item.files if isinstance(self.item, StoredArtifact) else (self.item.file,)

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(file.size for file in self.files)


def uses(contents: Contents, references: tuple[ModelReference, ...], bucket: str) -> Mapping[str, tuple[str, ...]]:
    """The users of each object that is in use, in words, by object key.

    All objects of an artifact have the users of the artifact.

    Args:
        contents: the contents of the bucket.
        references: the references of the region's models.
        bucket: the bucket's name.
    """
    found: dict[str, list[str]] = {}
    indexes = contents.indexes
    ours = [each for each in references if each.bucket in (None, bucket)]
    published = _published(contents)
    whole = [each for each in ours if not (each.multi_model and _with_slash(each.path) in indexes)]
    for copy in contents.copies:
        users = [each.user for each in whole if each.covers(bucket, copy.file.key)]
        if (index := indexes.get(copy.directory)) is not None:
            parts = (("current", index.current), ("previous", index.previous))
            served = [part for part, names in parts if copy.target_model in names.values()]
            users += [f"multi-model {index.fleet} ({part})" for part in served]
        users += published.get(copy.file.key, [])
        users += [f"published {e.ensemble} of {e.fleet} (unknown)" for e in contents.unreadable if e.may_list(copy)]
        found[copy.file.key] = users
    sources = _sources(contents.copies, found)
    locked = {lock.artifact_key for lock in contents.locks if lock.is_live}
    for artifact in contents.artifacts:
        users = [each.user for each in whole if any(each.covers(bucket, file.key) for file in artifact.files)]
        users += sources.get(artifact.key, [])
        users += ["a build"] if artifact.key in locked else []
        found.update({file.key: users for file in artifact.files})
    return {key: tuple(dict.fromkeys(users)) for key, users in found.items() if users}


def candidates(
    contents: Contents, used: Mapping[str, tuple[str, ...]], *, now: datetime, grace: timedelta, keep_last: int = 0
) -> tuple[Candidate, ...]:
    """List all that nothing uses and that was replaced longer ago than the grace period, in the order of names.

    Args:
        contents: what the bucket holds.
        used: the users of each object.
        now: the present.
        grace: how old the youngest part has to be, and how old its successor.
        keep_last: how many of the newest of each repository, and of each ensemble of a multi-model endpoint, are kept
            in any case.
    """
    lines: dict[str, list[Candidate]] = {}
    for each in _all(contents):
        if each.is_complete:
            lines.setdefault(each.line, []).append(each)
    last = {each.name for line in lines.values() for each in sorted(line, key=_by_age)[:keep_last]}
    return tuple(
        each
        for each in _all(contents)
        if each.name not in last
        and not any(file.key in used for file in each.files)
        and now - _replaced(each, lines.get(each.line, ())) > grace
    )


def _by_age(candidate: Candidate) -> float:
    """The youngest first."""
    return -candidate.stored.timestamp()


def _replaced(candidate: Candidate, line: Sequence[Candidate]) -> datetime:
    """The earliest moment at which it can have been replaced, and no earlier than it was stored.

    No list of past deployments exists. The next one of its line was stored before it was deployed.
    """
    return min((each.stored for each in line if each.stored > candidate.stored), default=candidate.stored)


def _all(contents: Contents) -> Iterator[Candidate]:
    yield from map(Candidate, contents.artifacts)
    yield from map(Candidate, contents.copies)


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _published(contents: Contents) -> dict[str, list[str]]:
    """Object key to the ensembles of the catalogue that list it."""
    users: dict[str, list[str]] = {}
    for each in contents.catalogue:
        entry = each.entry
        for name in sorted(version.target_model for version in entry.versions):
            state = "current" if name == entry.current else "previous"
            users.setdefault(each.directory + name, []).append(f"published {entry.ensemble} of {entry.fleet} ({state})")
    return users


def _sources(copies: tuple[MultiModelArchive, ...], found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Artifact key to the users of the copies that were made from it."""
    sources: dict[str, list[str]] = {}
    for copy in copies:
        if copy.artifact_key is not None and found[copy.file.key]:
            sources.setdefault(copy.artifact_key, []).extend(found[copy.file.key])
    return sources
