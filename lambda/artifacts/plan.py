"""The plan: the objects that a stack needs in the store. The synthesis writes it, and this module reads it.

Schema 1 has archives that the synthesis packed. Schema 2 adds archives to build, schema 3 archives to copy from the
store that this one promotes from, schema 4 files that are served as they are, and schema 5 metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .failure import ArtifactError

__all__ = ["BuildInput", "BuildMachine", "Commit", "EnsembleBuild", "File", "Fleet", "FleetCopy", "StackPlan"]

SCHEMAS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class BuildInput:
    """One file that a build reads.

    Attributes:
        bucket: its bucket; None for the plan's bucket.
        key: its object key there.
        version: its version there; None for the current one.
        path: its path in the build's input folder.
        sha256: its SHA-256, if the recipe gives one. An asset needs none, because its key is a hash already.
    """

    bucket: str | None
    key: str
    version: str | None
    path: str
    sha256: str | None


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
        platform: the versions and the GPU that the build program expects, as in the build plan.
        program: the build program's place among the assets, and its path in the input folder.
        instance_type: of a Processing job, else None.
        volume_gb: of a Processing job, else None.
    """

    kind: str
    timeout_minutes: int
    platform: Mapping[str, Any]
    program: BuildInput
    instance_type: str | None
    volume_gb: int | None


@dataclass(frozen=True)
class File:
    """One file of data that is served uncompressed.

    Attributes:
        path: its path in the repository.
        asset: its object key in the plan's bucket; None for an empty file.
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
        asset: the archive's object key in the plan's bucket; None if it is built or promoted.
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
class FleetCopy:
    """One committed archive that a multi-model endpoint serves; `target` is its object key below the prefix."""

    ensemble: str
    artifact_key: str
    archive: str
    target: str


@dataclass(frozen=True)
class Fleet:
    """The archives that one multi-model endpoint serves.

    Attributes:
        name: the name of the `TritonMultiModel`.
        index: the object key of the list of current and previous target models.
        copies: the archives.
    """

    name: str
    index: str
    copies: tuple[FleetCopy, ...]

    @property
    def target_models(self) -> dict[str, str]:
        """Ensemble to target model: what a caller sends as `TargetModel`."""
        return {copy.ensemble: copy.target.rsplit("/", 1)[-1] for copy in self.copies}


@dataclass(frozen=True)
class StackPlan:
    """The archives to commit, the machine that builds them and, for a multi-model endpoint, the copies to serve."""

    commits: tuple[Commit, ...]
    fleet: Fleet | None
    builder: BuildMachine | None = None

    @classmethod
    def parse(cls, text: bytes, *, sha256: str) -> StackPlan:
        """Read a plan whose content must have the given hash.

        Raises:
            ArtifactError: the content has another hash, or is a plan of another version of this library.
        """
        found = hashlib.sha256(text).hexdigest()
        if found != sha256:
            raise ArtifactError(
                f"the plan's SHA-256 is {found}, not {sha256}: the asset was changed after the synthesis; delete the "
                "asset (the property PlanKey has its key) from the CDK bootstrap bucket, and deploy again"
            )
        try:
            return cls._read(json.loads(text))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ArtifactError(
                f"cdk-triton did not write this plan ({type(error).__name__}: {error}); synthesise the stack again, "
                "and deploy it with the assets of that synthesis"
            ) from error

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> StackPlan:
        if document.get("schema") not in SCHEMAS:
            raise ArtifactError(
                f"the plan has schema {document.get('schema')!r}, but this artifact store reads the schemas "
                f"{SCHEMAS[0]} to {SCHEMAS[-1]}; first deploy the stack of the artifact store with the version of "
                "cdk-triton that wrote the plan"
            )
        fleet, builder = document["fleet"], document.get("builder")
        return cls(
            commits=tuple(_commit(commit) for commit in document["commits"]),
            fleet=None if fleet is None else _fleet(fleet),
            builder=None if builder is None else _builder(builder),
        )


def _commit(document: Mapping[str, Any]) -> Commit:
    build = document.get("build")
    if build is not None:
        inputs = tuple(BuildInput(**source) for source in build["inputs"])
        build = EnsembleBuild(inputs=inputs, ensemble=build["ensemble"])
    files = document.get("files")
    if files is not None:
        files = tuple(File(**file) for file in files)
    return Commit(**{**document, "build": build, "files": files})


def _builder(document: Mapping[str, Any]) -> BuildMachine:
    program = BuildInput(bucket=None, version=None, sha256=None, **document["program"])
    return BuildMachine(**{**document, "program": program})


def _fleet(document: Mapping[str, Any]) -> Fleet:
    copies = tuple(FleetCopy(**copy) for copy in document["copies"])
    return Fleet(name=document["name"], index=document["index"], copies=copies)
