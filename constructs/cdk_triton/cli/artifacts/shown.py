"""The answer of `show`: an artifact's manifest and rehearsals, or the catalogue's record of an archive without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cdk_triton.cli.artifacts.contents import (
    Contents,
    MultiModelArchive,
    StoredArtifact,
    read_artifacts,
    read_contents,
    read_manifest,
)
from cdk_triton.cli.artifacts.passes import rehearsals_of
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.cli.artifacts.text import SHORT
from cdk_triton.errors import ConfigurationError

__all__ = ["document_of"]

_KEY = re.compile(r"[0-9a-f]{1,64}")


def document_of(store: Store, name: str) -> dict[str, Any]:
    """The manifest of the one artifact that a name selects, and the figures of its rehearsals.

    A publisher writes the archive of an ensemble without recipes only below the prefix of its multi-model endpoint,
    without a manifest. The document for such an archive contains the members that the catalogue has for it.

    Args:
        store: the store.
        name: the beginning of an artifact key, with or without its repository and a slash; or a target model, which
            ends with `.tar.gz`.

    Raises:
        ConfigurationError: no archive matches, or several do.
    """
    if name.endswith(".tar.gz"):
        return _of_target_model(store, name)
    repository, _, digits = name.rpartition("/")
    if not _KEY.fullmatch(digits.lower()):
        raise ConfigurationError(
            f"{name!r} is not the beginning of an artifact key, which has hexadecimal digits; "
            "`cdk-triton artifacts list` lists the keys"
        )
    artifacts = read_artifacts(store)
    alike = [each for each in artifacts if each.key.startswith(digits.lower())]
    found = [each for each in alike if repository in ("", each.repository)]
    if not found:
        return _without_artifact(store, name)
    if len(found) > 1:
        names = ", ".join(f"{each.repository}/{each.key[: SHORT + len(digits)]}" for each in found[:5])
        raise ConfigurationError(
            f"{len(found)} artifacts have a key that begins with {name}: {names}; give more digits, or REPOSITORY/KEY"
        )
    return _document(store, found[0], artifacts)


def _of_target_model(store: Store, name: str) -> dict[str, Any]:
    contents = read_contents(store)
    copies = [copy for copy in contents.copies if copy.target_model == name]
    found = _artifacts(contents, copies)
    if copies and not found:
        return _archives(contents, copies)
    if len(found) != 1:
        many = f"is a copy of {len(found)} artifacts, one for each platform,"
        copy_of = many if found else "is not an archive"
        raise ConfigurationError(
            f"the target model {name!r} {copy_of} in s3://{store.bucket}; `cdk-triton artifacts list` "
            "shows target models with their keys"
        )
    return _document(store, found[0], contents.artifacts)


def _document(store: Store, artifact: StoredArtifact, artifacts: Sequence[StoredArtifact]) -> dict[str, Any]:
    manifest = read_manifest(store, artifact)
    rehearsals = rehearsals_of(store, artifact, artifacts)
    return {**manifest, "rehearsals": rehearsals} if rehearsals else manifest


def _without_artifact(store: Store, name: str) -> dict[str, Any]:
    """The archives whose key begins so, which have no artifact."""
    contents = read_contents(store)
    repository, _, digits = name.rpartition("/")
    copies = [copy for copy in contents.copies if (copy.artifact_key or "").startswith(digits.lower())]
    if repository:
        copies = [copy for copy in copies if _published(contents, copy).get("repository") == repository]
    keys = sorted({str(copy.artifact_key) for copy in copies})
    if not keys:
        raise ConfigurationError(
            f"no artifact in s3://{store.bucket} has a key that begins with {name}; `cdk-triton artifacts list` "
            "lists all artifacts"
        )
    if len(keys) > 1:
        names = ", ".join(key[: SHORT + len(digits)] for key in keys[:5])
        raise ConfigurationError(
            f"{len(keys)} published archives have a key that begins with {name}: {names}; give more digits"
        )
    return _archives(contents, copies)


def _artifacts(contents: Contents, copies: Sequence[MultiModelArchive]) -> list[StoredArtifact]:
    keys = {copy.artifact_key for copy in copies}
    return [each for each in contents.artifacts if each.key in keys]


def _archives(contents: Contents, copies: Sequence[MultiModelArchive]) -> dict[str, Any]:
    """The archives without a manifest, one for each multi-model endpoint that serves them."""
    return {
        "manifest": None,
        "archives": [
            {
                "artifact_key": copy.artifact_key,
                "target_model": copy.target_model,
                "prefix": copy.directory,
                "size": copy.file.size,
                "stored": copy.file.modified.isoformat(),
                "state": contents.state_of(copy),
                **_published(contents, copy),
            }
            for copy in copies
        ],
    }


def _published(contents: Contents, copy: MultiModelArchive) -> dict[str, Any]:
    """The members of the catalogue for an archive; none if the catalogue does not list it any more."""
    for each in contents.catalogue:
        for version in each.entry.versions:
            if (each.directory, version.target_model) == (copy.directory, copy.target_model):
                return {
                    "multi_model": each.entry.fleet,
                    "ensemble": each.entry.ensemble,
                    "repository": version.repository,
                    "live": version.live.time.isoformat(),
                    "publisher": version.live.publisher,
                    "execution": version.live.execution,
                }
    return {}
