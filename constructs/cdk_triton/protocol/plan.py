"""The build plan: the objects that a stack needs in the store. Synth writes it, and the store's handler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .documents import Document

__all__ = [
    "BuildInput",
    "BuildMachine",
    "Commit",
    "EnsembleBuild",
    "File",
    "PlannedRehearsal",
    "ServedArchives",
    "ServedCopy",
    "StackPlan",
]


@dataclass(frozen=True)
class BuildInput:
    """One file that a build reads.

    Attributes:
        bucket: its bucket; None for the build plan's bucket.
        key: its object key there.
        path: its path in the build's input folder.
        version: its version there; None for the current one.
        sha256: its SHA-256, if the recipe gives one. An asset needs none, because its key is a hash already.
    """

    bucket: str | None
    key: str
    path: str
    version: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class EnsembleBuild:
    """How one archive is built: the files to bring, and the build program's own description of the ensemble."""

    inputs: tuple[BuildInput, ...]
    ensemble: Mapping[str, Any]


@dataclass(frozen=True)
class BuildMachine:
    """The machine that builds.

    Attributes:
        kind: `codebuild` or `processing`.
        timeout_minutes: the time after which the service ends a job.
        platform: the versions and the GPU that the build program expects, as in its `plan.json`.
        program: the build program's place among the assets, and its path in the input folder.
        instance_type: the instance type of a Processing job; None for CodeBuild.
        volume_gb: the volume size of a Processing job; None for CodeBuild.
    """

    kind: str
    timeout_minutes: int
    platform: Mapping[str, Any]
    program: BuildInput
    instance_type: str | None = None
    volume_gb: int | None = None


@dataclass(frozen=True)
class File:
    """One file of data that is served uncompressed.

    Attributes:
        path: its path in the repository.
        asset: its object key in the build plan's bucket; None for an empty file.
        size: its size in bytes.
    """

    path: str
    asset: str | None
    size: int


@dataclass(frozen=True)
class Commit:
    """One archive that goes into the store, or the files of one, and the manifest that commits it.

    Attributes:
        repository: its name, that of the repository's directory.
        artifact_key: SHA-256 over everything that determines the archive.
        platform: release and GPU, as in `25.09-a10g`.
        asset: the archive's object key in the build plan's bucket; None if it is built or promoted.
        archive: its object key in the store; the prefix of the files if there are some.
        manifest: the manifest's object key in the store.
        build: how it is built; None if it is an asset or promoted.
        files: the files that are served instead of an archive; None for an archive.
        metadata: the user's notes, such as a commit, for the manifest that is written now.
    """

    repository: str
    artifact_key: str
    platform: str
    asset: str | None
    archive: str
    manifest: str
    build: EnsembleBuild | None = None
    files: tuple[File, ...] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedRehearsal:
    """A rehearsal of one archive of the build plan, which has to pass before the deployment goes on.

    Attributes:
        repository: the name of the repository.
        artifact_key: of the archive that is rehearsed; one commit of the build plan has it.
        key: the rehearsal key; see `keys.rehearsal_key`.
        image: the identity of the image, for messages and for the pass.
        inputs: the files to bring: the ZIP file of the golden requests, as `rehearsals/<key>.zip`.
        golden: the SHA-256 of that ZIP file.
        document: what the build program reads about the rehearsal, without the files of the requests.
    """

    repository: str
    artifact_key: str
    key: str
    image: str
    inputs: tuple[BuildInput, ...]
    golden: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class ServedCopy:
    """One committed archive that a multi-model endpoint serves; `target` is its object key below the prefix."""

    ensemble: str
    artifact_key: str
    archive: str
    target: str


@dataclass(frozen=True)
class ServedArchives:
    """The archives that one multi-model endpoint serves.

    Attributes:
        name: the name of the `TritonMultiModel`.
        index: the object key of the list of current and previous target models.
        copies: the archives.
    """

    name: str
    index: str
    copies: tuple[ServedCopy, ...]

    @property
    def target_models(self) -> dict[str, str]:
        """Ensemble to target model: what a caller sends as `TargetModel`."""
        return {copy.ensemble: copy.target.rsplit("/", 1)[-1] for copy in self.copies}


@dataclass(frozen=True)
class StackPlan(Document):
    """The objects that a stack needs, and how they come into the store.

    Attributes:
        commits: the archives to commit.
        fleet: the archives that a multi-model endpoint serves.
        builder: the machine that builds and rehearses; None if nothing is built or rehearsed.
        rehearsals: the rehearsals that have to pass.
    """

    SCHEMA: ClassVar[int] = 2

    commits: tuple[Commit, ...]
    fleet: ServedArchives | None = None
    builder: BuildMachine | None = None
    rehearsals: tuple[PlannedRehearsal, ...] = ()
