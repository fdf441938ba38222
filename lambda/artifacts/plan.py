"""The plan: what shall exist in the store, written at synth and read here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .failure import ArtifactError

__all__ = ["Commit", "Fleet", "FleetCopy", "Plan"]

SCHEMA = 1


@dataclass(frozen=True)
class Commit:
    """One archive that goes from the assets into the store, and the manifest that commits it.

    Attributes:
        repository: its name, that of the repository's directory.
        artifact_key: SHA-256 over everything that determines the archive.
        platform: release and GPU, as in `25.09-a10g`.
        asset: the archive's object key in the plan's bucket.
        archive: its object key in the store.
        manifest: the manifest's object key in the store.
    """

    repository: str
    artifact_key: str
    platform: str
    asset: str
    archive: str
    manifest: str


@dataclass(frozen=True)
class FleetCopy:
    """One committed archive that a multi-model endpoint serves; `target` is its object key below the fleet's prefix."""

    ensemble: str
    artifact_key: str
    archive: str
    target: str


@dataclass(frozen=True)
class Fleet:
    """What one multi-model endpoint serves.

    Attributes:
        name: the fleet's name.
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
class Plan:
    """The archives to commit and, for a multi-model endpoint, its fleet."""

    commits: tuple[Commit, ...]
    fleet: Fleet | None

    @classmethod
    def parse(cls, text: bytes, *, sha256: str) -> Plan:
        """Read a plan whose content must have the given hash.

        Raises:
            ArtifactError: the content is another one, or a plan of another version of this library.
        """
        found = hashlib.sha256(text).hexdigest()
        if found != sha256:
            raise ArtifactError(
                f"the plan's SHA-256 is {found}, not {sha256}: the asset was changed after the synthesis"
            )
        document = json.loads(text)
        if document.get("schema") != SCHEMA:
            raise ArtifactError(
                f"the plan has schema {document.get('schema')!r} and this store reads {SCHEMA}; deploy the stack of "
                "the artifact store with the same version of cdk-triton first"
            )
        fleet = document["fleet"]
        return cls(
            commits=tuple(Commit(**commit) for commit in document["commits"]),
            fleet=None if fleet is None else _fleet(fleet),
        )


def _fleet(document: Mapping[str, Any]) -> Fleet:
    copies = tuple(FleetCopy(**copy) for copy in document["copies"])
    return Fleet(name=document["name"], index=document["index"], copies=copies)
