"""The contents of a store's bucket, read from listings; the layout is that of `cdk_triton.protocol.layout`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import code_of, in_parallel
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.errors import StoreError
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import REPAIR, Entry
from cdk_triton.protocol.documents import DocumentError, OtherVersionError
from cdk_triton.protocol.index import Index
from cdk_triton.triton.findings import printable

__all__ = [
    "Contents",
    "MultiModelArchive",
    "PublishedEnsemble",
    "StoredArtifact",
    "StoredFile",
    "StoredLock",
    "Unreadable",
    "find",
    "parse_entry",
    "read_artifacts",
    "read_contents",
    "read_locks",
    "read_manifest",
    "read_published",
    "read_text",
]

_FOREIGN = ", so cdk-triton did not write this object; restore an earlier version of the object"


@dataclass(frozen=True)
class StoredFile:
    """An object of the bucket. `modified` is S3's time, with its zone; conditions of requests compare `etag`."""

    key: str
    size: int
    modified: datetime
    etag: str


@dataclass(frozen=True)
class StoredArtifact:
    """The archive of a repository, or its files, and the manifest that commits them; a crash may have left only a part.

    Attributes:
        repository: the name of the repository's directory.
        key: the artifact key, 64 hexadecimal digits.
        archive: the archive.
        manifest: the manifest, which is written last and deleted first.
        uncompressed: the files, if they are served without an archive.
        sources: the sources of the archive, if a publisher ordered its build.
        passes: the rehearsals that the archive has passed.
        golden: the golden requests of rehearsals that a publisher ordered.
    """

    repository: str
    key: str
    archive: StoredFile | None
    manifest: StoredFile | None
    uncompressed: tuple[StoredFile, ...] = ()
    sources: StoredFile | None = None
    passes: tuple[StoredFile, ...] = ()
    golden: tuple[StoredFile, ...] = ()

    @property
    def data(self) -> tuple[StoredFile, ...]:
        """The files that instances download."""
        return self.uncompressed if self.archive is None else (self.archive, *self.uncompressed)

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """Its existing objects."""
        rehearsed = (*self.passes, *self.golden)
        return tuple(file for file in (self.manifest, *self.data, self.sources, *rehearsed) if file is not None)


@dataclass(frozen=True)
class MultiModelArchive:
    """An archive below the prefix that a multi-model endpoint serves from.

    Attributes:
        directory: the prefix, as in `fleets/<name>/<platform>/`.
        target_model: the archive's name below the prefix.
        file: the object.
        artifact_key: the artifact key of the archive that it was copied from; None if the object does not record it.
    """

    directory: str
    target_model: str
    file: StoredFile
    artifact_key: str | None


@dataclass(frozen=True)
class PublishedEnsemble:
    """An entry of the catalogue, and the prefix from which its archives are served."""

    directory: str
    entry: Entry


@dataclass(frozen=True)
class Unreadable:
    """An entry of the catalogue that cannot be read, so the versions that it lists are not known.

    Attributes:
        directory: the prefix from which its archives are served.
        fleet: the name of the `TritonMultiModel` in the store.
        ensemble: its name.
        fault: why it cannot be read, and the repair.
    """

    directory: str
    fleet: str
    ensemble: str
    fault: str

    def may_list(self, copy: MultiModelArchive) -> bool:
        """Whether the archive is a version of the ensemble."""
        return (copy.directory, copy.target_model.rpartition("-")[0]) == (self.directory, self.ensemble)


@dataclass(frozen=True)
class StoredLock:
    """The lock of an artifact key or a rehearsal key; it outlives its build, and expires after 7 days.

    Attributes:
        key: the key.
        document: the lock: `repository`, `artifact_key`, `build`, …
        state: the build that it points to: `state`, `kind`, `created_at`, `members`, `link`, …; None without a build.
    """

    key: str
    document: Mapping[str, Any]
    state: Mapping[str, Any] | None

    @property
    def artifact_key(self) -> str:
        """The key of the archive that is built or rehearsed."""
        return str(self.document.get("artifact_key", self.key))

    @property
    def is_live(self) -> bool:
        """Whether the build can still make what has the key; true if the state of the build is missing."""
        if self.state is None:
            return True
        members = self.state.get("members")
        return self.state.get("state") != "ended" and (members is None or self.key in members)


@dataclass(frozen=True)
class Contents:
    """All objects of the bucket that these commands read.

    The key of each index is its prefix, such as `fleets/<name>/<platform>/`.
    """

    artifacts: tuple[StoredArtifact, ...]
    copies: tuple[MultiModelArchive, ...]
    indexes: Mapping[str, Index]
    locks: tuple[StoredLock, ...]
    catalogue: tuple[PublishedEnsemble, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def state_of(self, copy: MultiModelArchive) -> str:
        """`current` or `previous` of the index or the catalogue; `dropped` if neither lists the archive.

        `unknown` if the entry of its ensemble cannot be read.
        """
        is_unknown = any(each.may_list(copy) for each in self.unreadable)
        return self._states.get((copy.directory, copy.target_model), "unknown" if is_unknown else "dropped")

    @functools.cached_property
    def _states(self) -> Mapping[tuple[str, str], str]:
        states = {
            (directory, name): state
            for directory, index in self.indexes.items()
            for state, names in (("previous", index.previous), ("current", index.current))
            for name in names.values()
        }
        for each in self.catalogue:
            states |= {(each.directory, version.target_model): "previous" for version in each.entry.versions}
            states |= {} if each.entry.current is None else {(each.directory, each.entry.current): "current"}
        return states

    @property
    def keys(self) -> tuple[str, ...]:
        """The object keys of archives, manifests and multi-model archives."""
        files = [file.key for artifact in self.artifacts for file in artifact.files]
        return (*files, *(copy.file.key for copy in self.copies))


def read_contents(store: Store) -> Contents:
    """List the bucket.

    Raises:
        StoreError: an index or a lock is not what the handler writes, so it is not known what it protects.
        ClientError, BotoCoreError: a call failed.
    """
    files = _files(store, layout.FLEETS_PREFIX)
    fleets = [(file, found) for file in files if (found := layout.parse_fleet_object(file.key))]
    copies = [(file, found) for file, found in fleets if found.file != layout.INDEX]
    keys = in_parallel(lambda each: _artifact_key(store, each[0]), copies)
    catalogue = list(read_published(store))
    return Contents(
        artifacts=read_artifacts(store),
        copies=tuple(
            MultiModelArchive(layout.fleet_prefix(found.fleet, found.platform), found.file, file, key)
            for (file, found), key in zip(copies, keys, strict=True)
        ),
        indexes={
            layout.fleet_prefix(found.fleet, found.platform): _index(store, file)
            for file, found in fleets
            if found.file == layout.INDEX
        },
        locks=read_locks(store),
        catalogue=tuple(each for each in catalogue if isinstance(each, PublishedEnsemble)),
        unreadable=tuple(each for each in catalogue if isinstance(each, Unreadable)),
    )


def read_artifacts(store: Store) -> tuple[StoredArtifact, ...]:
    """The objects below `artifacts/`, by repository and key."""
    return tuple(_artifacts(_files(store, layout.ARTIFACTS_PREFIX)))


def read_locks(store: Store) -> tuple[StoredLock, ...]:
    """The locks of builds.

    Raises:
        StoreError: one is not what the handler writes.
    """
    return tuple(lock for file in _files(store, layout.LOCKS_PREFIX) if (lock := _lock(store, file)))


def find(store: Store, key: str) -> StoredFile | None:
    """One object, or None if it does not exist."""
    try:
        head = store.aws.client("s3").head_object(Bucket=store.bucket, Key=key)
    except ClientError as error:
        if code_of(error) == "404":
            return None
        raise
    return StoredFile(key, head["ContentLength"], head["LastModified"], head["ETag"])


def read_manifest(store: Store, artifact: StoredArtifact) -> dict[str, Any]:
    """An artifact's manifest.

    Raises:
        StoreError: the object has been deleted meanwhile, or is not a manifest.
    """
    if artifact.manifest is None:
        raise StoreError(f"the artifact {artifact.key} of {artifact.repository} is not committed: it has no manifest")
    document = _json(store, artifact.manifest.key)
    if document is None:
        raise StoreError(f"s3://{store.bucket}/{artifact.manifest.key} was deleted a moment ago; run this again")
    return document


def _files(store: Store, prefix: str) -> Iterator[StoredFile]:
    for each in store.aws.pages("s3", "list_objects_v2", "Contents", Bucket=store.bucket, Prefix=prefix):
        yield StoredFile(each["Key"], each["Size"], each["LastModified"], each["ETag"])


def _artifacts(files: Iterator[StoredFile]) -> Iterator[StoredArtifact]:
    found: dict[tuple[str, str], dict[str, StoredFile]] = {}
    for file in files:
        if part := layout.parse_artifact_object(file.key):
            found.setdefault((part.repository, part.key), {})[part.file] = file
    for (repository, key), parts in sorted(found.items()):
        uncompressed, passes, golden = (
            tuple(file for name, file in sorted(parts.items()) if name.startswith(prefix) and name.endswith(end))
            for prefix, end in ((layout.FILES, ""), (layout.REHEARSALS, ".json"), (layout.REHEARSALS, ".zip"))
        )
        archive, manifest, sources = map(parts.get, (layout.ARCHIVE, layout.MANIFEST, layout.SOURCES))
        yield StoredArtifact(repository, key, archive, manifest, uncompressed, sources, passes, golden)


def _artifact_key(store: Store, file: StoredFile) -> str | None:
    try:
        head = store.aws.client("s3").head_object(Bucket=store.bucket, Key=file.key)
    except ClientError as error:
        if code_of(error) == "404":  # deleted since it was listed
            return None
        raise
    key = head.get("Metadata", {}).get(layout.ARTIFACT_KEY_METADATA)
    return None if key is None else str(key)


def _index(store: Store, file: StoredFile) -> Index:
    try:
        return Index.parse(read_text(store, file.key) or b"")  # one that is gone is not an index either
    except DocumentError as error:
        fix = "deploy the endpoint's stack again, or delete the index if the endpoint no longer exists"
        raise StoreError(
            f"s3://{store.bucket}/{file.key} is not an index of this version of cdk-triton ({error}), so "
            "the archives that the multi-model endpoint serves are not known; "
            f"{'update cdk-triton' if isinstance(error, OtherVersionError) and error.is_newer else fix}"
        ) from error


def read_published(store: Store, prefix: str = layout.CATALOGUE_PREFIX) -> Iterator[PublishedEnsemble | Unreadable]:
    """The published ensembles below a prefix of the catalogue, by default those of every `TritonMultiModel`.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    files = [file for file in _files(store, prefix) if layout.parse_catalogue_object(file.key)]
    for file, text in zip(files, in_parallel(lambda file: read_text(store, file.key), files), strict=True):
        found = layout.parse_catalogue_object(file.key)
        if found is not None and text is not None:  # else gone meanwhile
            directory = layout.fleet_prefix(found.fleet, found.platform)
            try:
                yield PublishedEnsemble(directory, parse_entry(text, store.bucket, file.key))
            except StoreError as error:
                yield Unreadable(directory, found.fleet, found.ensemble, str(error))


def parse_entry(text: bytes | str, bucket: str, key: str) -> Entry:
    """An entry of the catalogue.

    Args:
        text: the document.
        bucket: the store's bucket.
        key: the object's key, which names the ensemble.

    Raises:
        StoreError: the document is not the entry of the ensemble, or has another schema.
    """
    place = layout.parse_catalogue_object(key)
    assert place is not None  # as its reader has found it
    try:
        return Entry.of(text, place.fleet, place.ensemble)
    except DocumentError as error:
        is_newer = isinstance(error, OtherVersionError) and error.is_newer
        reason = f"it has {error}" if isinstance(error, OtherVersionError) else error
        raise StoreError(
            f"the entry {printable(f's3://{bucket}/{key}')} of the catalogue cannot be read, because {reason}; "
            f"{'update cdk-triton' if is_newer else REPAIR}"
        ) from error


def _lock(store: Store, file: StoredFile) -> StoredLock | None:
    key = layout.parse_lock_key(file.key)
    document = None if key is None else _json(store, file.key)
    if key is None or document is None:  # not a lock, or gone meanwhile
        return None
    return StoredLock(key, document, _json(store, layout.build_state_key(str(document.get("build")))))


def read_text(store: Store, key: str) -> bytes | None:
    """The content of an object, or None if it is gone."""
    try:
        text: bytes = store.aws.client("s3").get_object(Bucket=store.bucket, Key=key)["Body"].read()
    except ClientError as error:
        if code_of(error) == "NoSuchKey":
            return None
        raise
    return text


def _json(store: Store, key: str) -> dict[str, Any] | None:
    """A JSON object of the bucket, or None if it is gone."""
    text = read_text(store, key)
    if text is None:
        return None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise StoreError(f"s3://{store.bucket}/{key} is not JSON ({error}){_FOREIGN}") from error
    if not isinstance(document, dict):
        raise StoreError(f"s3://{store.bucket}/{key} is not a JSON object{_FOREIGN}")
    return document
