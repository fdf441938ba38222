"""Jobs of a publisher's state machine: a batch of repositories becomes archives in the store, which are rehearsed.

The machine calls `build_batch` until it is complete. The function runs in the store's handler, because it starts jobs,
takes locks and commits, as `ensure` does for a deployment. So deployments and publishers build nothing twice.

A request names the recipes of each build by their numbers in the publisher's description, which a deployment wrote. The
function reads the uploaded sources, computes the keys with these recipes, and goes on only if they are those of the
request. It then keeps a copy of the sources where no caller can write, below the prefix of the archive: a change of the
platform builds from it again. If the build fails, the copy stays until `gc` deletes it. The inputs from S3 are those of
the recipes. The build steps come with the request, because only the library can read a configuration.

An archive with golden requests is rehearsed before the machine publishes it. One that was uploaded complete is first
verified and committed, because a caller can overwrite its upload. The golden requests come with the request too: they
are the caller's own, and a job gets only a file with the SHA-256 that is a part of the rehearsal key. They are kept
beside the pass, so that a publication for another platform can rehearse with them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from protocol import layout
from protocol.canonical import sha256_of_json
from protocol.documents import DocumentError, OtherVersionError
from protocol.keys import ArchiveKeys, KeyInputs
from protocol.plan import BuildInput, Commit, EnsembleBuild, PlannedRehearsal
from protocol.publication import Item, UploadedBuild, UploadedRehearsal
from protocol.publisher import BuildingPublisher, DeclaredBuilds

from .building import build_each
from .catalogue import read_entry
from .commits import commit_archive, committed, stored
from .copying import reading
from .failure import ArtifactError, for_publisher, is_transient, of_other_version
from .inputs import copy_verified_input
from .invocation import Invocation
from .products import Product
from .publication import Place, parse_item
from .rehearsals import ArchiveRehearsal
from .request import Request
from .storage import LostRaceError, StoredObject, TooLargeError
from .turn import Turn, TurnIsOverError
from .verified_copy import copy_verified, verified

__all__ = ["BuildEvent", "build_batch", "built_commit", "is_build"]

MAX_BUILD_BYTES = 4 * 1024**2
"""The size of an uploaded build. It names each file of a repository, so this is enough for about 25,000 files."""

MAX_GOLDEN_BYTES = 110_000_000
"""The size of a ZIP file of golden requests: 100 MB of bodies, and their names."""

FIRST_HOUR = 60 * 60
POLL_SECONDS, LATER_POLL_SECONDS = 30, 120
"""Seconds between two polls, in the first hour of an execution and later. A poll takes 9 of the 25,000 events in the
history of an execution ("Quotas related to state machine executions"). A build may wait and run for 52 hours."""

YIELD_SECONDS = 2
"""Seconds between two polls that copy; see `artifacts.YIELD_SECONDS`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildEvent:
    """The request of the machine.

    Attributes:
        publication: the caller and the id of the request.
        execution: the ARN of the execution.
        started_at: when the execution began, in seconds since 1970.
        batch: the items to build, one for each archive.
        assets: the bucket of the description and of the build program.
        description: the object key of the publisher's description there.
        sha256: the SHA-256 of the description.
        image: the image's URI.
    """

    publication: str
    execution: str
    started_at: float
    batch: tuple[Item, ...]
    assets: str
    description: str
    sha256: str
    image: str

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> BuildEvent:
        """Read an event from the definition of the state machine."""
        document = event["Publication"]
        return cls(
            publication=document["publish"],
            execution=document["execution"],
            started_at=float(document["started_at"]),
            batch=tuple(parse_item(each) for each in document["batch"]),
            assets=document["assets"],
            description=document["description"],
            sha256=document["sha256"],
            image=document["image"],
        )


def is_build(event: Mapping[str, Any]) -> bool:
    """Whether an event of the store's handler is a batch of builds."""
    return "Publication" in event


def build_batch(event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
    """Start, watch and commit the builds of a batch.

    Returns:
        `IsComplete`: whether each archive of the batch is committed or has a recorded failure; if not, `Seconds`: the
        pause before the next call.

    Raises:
        ArtifactError: no archive of the batch can be built.
    """
    parsed = BuildEvent.parse(event)
    waited = invocation.now() - parsed.started_at
    try:
        _Batch(parsed, *_read_publisher(parsed, invocation), invocation).go_on()
    except ArtifactError as error:
        raise ArtifactError(for_publisher(error.full)) from error
    except Exception as error:
        if not is_transient(error, waited):
            raise
        log.info("waiting for the next poll: %s", error)
        if isinstance(error, TurnIsOverError):
            return {"IsComplete": False, "Seconds": YIELD_SECONDS}
        return {"IsComplete": False, "Seconds": POLL_SECONDS if waited < FIRST_HOUR else LATER_POLL_SECONDS}
    return {"IsComplete": True}


def built_commit(item: Item, platform: str) -> Commit:
    """The place of a built archive in the store."""
    repository, key = item.repository, item.artifact_key
    archive, manifest = layout.archive_key(repository, key), layout.manifest_key(repository, key)
    return Commit(repository, key, platform, None, archive, manifest)


def _read_publisher(event: BuildEvent, invocation: Invocation) -> tuple[BuildingPublisher, DeclaredBuilds]:
    """Read the publisher's description from the assets.

    Raises:
        ArtifactError: the description is missing, was changed, or has the schema of another version.
    """
    where = f"s3://{event.assets}/{event.description}"
    found = invocation.storage.read(event.description, bucket=event.assets)
    if found is None or hashlib.sha256(found[0]).hexdigest() != event.sha256:
        raise ArtifactError(f"the description {where} is missing or was changed; deploy the publisher's stack again")
    try:
        publisher = BuildingPublisher.parse(found[0])
        return publisher, DeclaredBuilds.parse(publisher.builds)
    except OtherVersionError as error:
        fix = "deploy the publisher's stack with the version of cdk-triton that deployed the artifact store"
        raise of_other_version(f"the description {where}", error, "artifact store", fix) from error
    except DocumentError as error:
        raise ArtifactError(
            f"cdk-triton did not write the description {where} ({error}); deploy the publisher's stack again"
        ) from error


class _Batch:
    """The builds and rehearsals of one call."""

    def __init__(
        self, event: BuildEvent, publisher: BuildingPublisher, builds: DeclaredBuilds, invocation: Invocation
    ) -> None:
        self._event = event
        self._keys = publisher.keys
        self._builds = builds
        self._invocation = invocation
        self._storage = invocation.storage
        self._place = Place(publisher.fleet, builds.label, event.execution)
        self._read: dict[str, UploadedBuild] = {}
        self._reading = Lock()

    def go_on(self) -> None:
        """Return when each archive is committed or has a recorded failure.

        Raises:
            NotYetError: the next poll has to go on.
        """
        archives = {(item.repository, item.artifact_key): item for item in self._event.batch}
        pending = list(filter(None, self._invocation.each(self._wanted_archive, archives.values())))
        rehearsed = [item for item in self._event.batch if item.is_rehearsed]
        rehearsals = list(filter(None, self._invocation.each(self._wanted_rehearsal, rehearsed)))
        if pending or rehearsals:
            request = self._request()
            build_each(pending, rehearsals, self._builds.builder, request, self._invocation, self._fail)
            list(self._invocation.each(self._wanted_rehearsal, rehearsed))  # which keeps the golden requests

    def _wanted_archive(self, item: Item) -> Commit | None:
        """The archive to build; None if it is committed, or after a recorded failure.

        Raises:
            TurnIsOverError: the time is up.
        """
        failure = self._place.build_failure(item.artifact_key, item.repository)
        if self._storage.read(failure) is not None:
            return None
        try:
            return self._archive_to_build(item)
        except ArtifactError as error:
            self._record_failure(failure, item.repository, error.full)
            return None

    def _wanted_rehearsal(self, item: Item) -> ArchiveRehearsal | None:
        """The rehearsal without a pass; None after a recorded failure, also of its archive.

        Raises:
            TurnIsOverError: the time is up.
        """
        failure = self._place.rehearsal_failure(item.rehearsal)
        failures = [failure, self._place.build_failure(item.artifact_key, item.repository)]
        if any(self._storage.read(each) is not None for each in failures):
            return None
        try:
            return self._rehearsal(item)
        except ArtifactError as error:
            self._record_failure(failure, item.repository, error.full)
            return None

    def _archive_to_build(self, item: Item) -> Commit | None:
        """The archive to build; None if it is committed."""
        if not item.built:
            self._store_upload(item)
            return None
        is_there = committed(self._commit(item, EnsembleBuild((), {})), self._storage) is not None
        if is_there and self._storage.head(layout.kept_sources_key(item.repository, item.artifact_key)) is not None:
            return None
        build = self._verified(item)  # which keeps the sources also of an archive that a deployment has built
        return None if is_there else self._commit(item, build)

    def _store_upload(self, item: Item) -> None:
        """Commit a complete archive that was uploaded, if it has the keys of the item."""
        commit = built_commit(item, self._builds.label)
        if committed(commit, self._storage) is None:
            origin = self._place.upload(self._event.publication, item.artifact_key)
            if item.is_there:  # then the command uploads nothing
                origin = self._place.served + item.target_model
            elif item.from_platform:
                origin = self._place.served_by(item.from_platform) + item.target_model
            commit_archive(commit, self._take(item, origin, commit.archive, self._keys), self._storage)

    def _rehearsal(self, item: Item) -> ArchiveRehearsal | None:
        """The rehearsal; None if the archive has passed it. Then its golden requests are kept.

        Raises:
            TurnIsOverError: the time is up.
            ArtifactError: the publisher does not rehearse, or the uploaded rehearsal cannot be read.
        """
        if self._builds.rehearses is None:
            raise ArtifactError(
                f"the repository {item.repository!r} has golden requests, but the publisher does not rehearse; install "
                "the version of cdk-triton that deployed the publisher, and publish again"
            )
        uploaded = self._uploaded_rehearsal(item)
        image = str(self._builds.builder.platform.get("image"))
        key = uploaded.key(
            artifact_key=item.artifact_key,
            image=image,
            instance_type=self._builds.rehearses,
            program=self._builds.rehearsal_version,
        )
        if key != item.rehearsal:
            raise ArtifactError(
                f"the uploaded rehearsal of {item.repository!r} has the key {key} for this publisher, but the request "
                f"has {item.rehearsal}; publish with the publisher's version of cdk-triton"
            )
        origin = self._place.golden(self._event.publication, uploaded.golden)
        found = self._storage.head(origin)
        if found is not None and found.size > MAX_GOLDEN_BYTES:
            raise ArtifactError(
                f"the golden requests {origin} have {found.size:,} bytes, but at most {MAX_GOLDEN_BYTES:,} are "
                f"allowed; publish {item.repository!r} with fewer golden requests"
            )
        golden = BuildInput(self._storage.bucket, origin, f"rehearsals/{key}.zip", None, uploaded.golden)
        planned = PlannedRehearsal(
            item.repository, item.artifact_key, key, image, (golden,), uploaded.golden, uploaded.document
        )
        commit = built_commit(item, self._builds.label)
        rehearsal = ArchiveRehearsal(planned, commit, self._storage.bucket)
        archive = stored(commit, self._storage)
        if archive is None or not rehearsal.has_passed(archive, self._storage):
            return rehearsal
        kept = layout.kept_golden_key(item.repository, item.artifact_key, key)
        copy_verified_input(golden, kept, self._event.assets, self._invocation)
        return None

    def _uploaded_rehearsal(self, item: Item) -> UploadedRehearsal:
        key = self._place.rehearsal(self._event.publication, item.rehearsal)
        try:
            found = self._storage.read(key, most=MAX_BUILD_BYTES)
        except TooLargeError as error:
            raise ArtifactError(f"{error.full}; publish {item.repository!r} with fewer golden requests") from error
        if found is None:
            raise ArtifactError(f"the rehearsal {key} is missing; publish again to upload it")
        try:
            return UploadedRehearsal.parse(found[0], item)
        except DocumentError as error:
            raise ArtifactError(
                f"the rehearsal {key} cannot be read ({error}); publish with the publisher's version of cdk-triton"
            ) from error

    def _request(self) -> Request:
        """The request in the form of a deployment; executions with the same batch share its builds."""
        products = sorted([item.artifact_key, item.repository, item.rehearsal] for item in self._event.batch)
        holder = sha256_of_json([self._builds.label, products])
        event = self._event
        return Request(
            is_delete=False,
            physical_id=holder,
            plan_bucket=event.assets,
            started_at=event.started_at,
            build_image=event.image,
        )

    def _commit(self, item: Item, build: EnsembleBuild) -> Commit:
        return dataclasses.replace(built_commit(item, self._builds.label), build=build)

    def _verified(self, item: Item) -> EnsembleBuild:
        """The build of an item, after its sources were compared with its keys.

        Raises:
            TurnIsOverError: the time is up.
            ArtifactError: the sources do not have the keys, or the build is not one of the publisher's.
        """
        uploaded = self._uploaded(item)
        recipes = self._recipes(item, uploaded.recipes)
        ensemble = {**uploaded.ensemble, "repository": item.repository}
        sources = layout.kept_sources_key(item.repository, item.artifact_key)
        if self._storage.head(sources) is None:
            self._take_sources(item, recipes)
        inputs = [BuildInput(self._storage.bucket, sources, ensemble["sources"])]
        files = {file["sha256"]: file for recipe in recipes for file in recipe["s3_files"]}
        inputs += [BuildInput(file["bucket"], file["key"], f"inputs/{sha}", None, sha) for sha, file in files.items()]
        return EnsembleBuild(tuple(inputs), ensemble)

    def _uploaded(self, item: Item) -> UploadedBuild:
        """The build of an item. Repositories with the same key share it, because it may be tens of megabytes."""
        with self._reading:
            if item.artifact_key not in self._read:
                self._read[item.artifact_key] = self._parsed(item)
            return self._read[item.artifact_key]

    def _parsed(self, item: Item) -> UploadedBuild:
        key = self._place.build(self._event.publication, item.artifact_key)
        try:
            found = self._storage.read(key, most=MAX_BUILD_BYTES)
        except TooLargeError as error:
            raise ArtifactError(f"{error.full}; publish the repository {item.repository!r} with fewer files") from error
        if found is None:
            raise ArtifactError(f"the description of the build, {key}, is missing; publish again to upload it")
        try:
            return UploadedBuild.parse(found[0], item)
        except DocumentError as error:
            raise ArtifactError(
                f"the description of the build, {key}, cannot be read ({error}); publish with the publisher's version "
                "of cdk-triton"
            ) from error

    def _recipes(self, item: Item, numbers: Sequence[int]) -> list[Mapping[str, Any]]:
        declared = dict(enumerate(self._builds.recipes))
        if not numbers or not all(number in declared for number in numbers):
            found = f"refers to the recipes with the numbers {list(numbers)}" if numbers else "does not name a recipe"
            raise ArtifactError(
                f"the build of the repository {item.repository!r} {found}, but the publisher has {len(declared)} "
                "recipes, numbered from 0; install the version of cdk-triton that deployed the publisher, and publish "
                "again"
            )
        return [declared[number] for number in numbers]

    def _take_sources(self, item: Item, recipes: Sequence[Mapping[str, Any]]) -> None:
        """Keep a copy of the uploaded sources if they have the keys of the item."""
        inputs = self._keys.with_recipes((each["parameters"] for each in recipes), self._builds.program)
        kept = layout.kept_sources_key(item.repository, item.artifact_key)
        self._take(item, self._unverified(item), kept, inputs)

    def _take(self, item: Item, origin: str, target: str, inputs: KeyInputs) -> StoredObject:
        """Copy an upload that has the keys of the item to `target`."""
        wanted = ArchiveKeys(item.source_key, item.artifact_key)
        with reading(origin, self._invocation.turn):
            # The turn may end while the upload is read, and a poll that saves nothing would repeat for ever.
            finish = Turn(self._invocation.remaining_millis, is_last=True)
            source = verified(origin, wanted, inputs, self._storage, finish)
        return copy_verified(source, target, wanted, self._storage, finish)

    def _unverified(self, item: Item) -> str:
        """The object key of the sources before their keys are verified."""
        if not item.from_platform:
            return self._place.upload(self._event.publication, item.artifact_key)
        entry = read_entry(self._place.multi_model, item.from_platform, item.ensemble, self._storage)
        for version in entry.versions:
            if version.target_model == item.target_model:
                return layout.kept_sources_key(version.repository, version.artifact_key)
        raise ArtifactError(
            f"the catalogue of {item.from_platform} does not list {item.target_model} any more; run the command again"
        )

    def _fail(self, product: Product, reason: str) -> None:
        """Record why a job does not make a product."""
        repository, artifact_key = product.archive
        place, is_archive = self._place, product.follows is None
        where = place.build_failure(artifact_key, repository) if is_archive else place.rehearsal_failure(product.key)
        self._record_failure(where, repository, reason)

    def _record_failure(self, where: str, repository: str, reason: str) -> None:
        """Record a reason, unless one is recorded already."""
        body = json.dumps({"repository": repository, "reason": for_publisher(reason)}, indent=2).encode()
        try:
            self._storage.write(where, body)
        except LostRaceError:
            log.info("the failure of %s is recorded", repository)
