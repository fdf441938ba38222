"""The layout of the store's bucket: each function that writes an object key stands beside the one that reads it.

::

    artifacts/<repository>/<artifact key>/model.tar.gz        immutable
    artifacts/<repository>/<artifact key>/files/<path>        instead of the archive, for a model with uncompressed=True
    artifacts/<repository>/<artifact key>/sources.tar.gz      the sources of an archive whose build a publisher ordered
    artifacts/<repository>/<artifact key>/manifest.json       written last: the commit
    artifacts/<repository>/<artifact key>/rehearsals/<rehearsal key>.json    a rehearsal of the archive that passed
    artifacts/<repository>/<artifact key>/rehearsals/<rehearsal key>.zip     its golden requests, if it was published
    fleets/<fleet>/<release>-<gpu>/<ensemble>-<source10>.tar.gz
    fleets/<fleet>/<release>-<gpu>/index.json                 current and previous target models
    catalogue/<fleet>/<release>-<gpu>/<ensemble>.json         of published ensembles: current target, last versions
    deletions/<time>-<digits>.json                            what one run of `cdk-triton artifacts gc` deleted
    staging/<build id>/in/                                    what a build reads; expires after 7 days
    staging/<build id>/out/                                   what a build writes; expires after 7 days
    staging/<build id>/state.json                             the state of a build; expires after 7 days
    staging/locks/<key>.json                                  which build makes an archive or rehearses it at the moment
    staging/publish/<fleet>/<caller>/                         the requests of a caller, with their archives or sources
    staging/publishing/<fleet>/<release>-<gpu>/               what the state machine of the publisher makes of them

An archive lies below the name of its repository's directory, not below an ensemble's name, because a multi-model
endpoint may serve one archive as several ensembles. Repositories whose directories have the same name share the prefix.
Their keys distinguish them, but each execution role can read all of them, so distinct names are better.

The platform is in the prefix of a multi-model endpoint, not in the names: a change of release or GPU gives a new
ModelDataUrl, but the `TargetModel` of callers stays the same. Names are flat below the prefix, because images from
26.03 on reject a `/` in a model's name (triton-inference-server/core 66f09f8).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

__all__ = [
    "ARCHIVE",
    "ARTIFACTS_PREFIX",
    "ARTIFACT_KEY_METADATA",
    "ASSET_PREFIX",
    "CATALOGUE_PREFIX",
    "DELETIONS_PREFIX",
    "FILES",
    "FLEETS_PREFIX",
    "INDEX",
    "LOCKS_PREFIX",
    "MANIFEST",
    "MAX_NAME_LENGTH",
    "NAME",
    "PUBLISHING_PREFIX",
    "PUBLISH_PREFIX",
    "REHEARSALS",
    "SERVED_PREFIXES",
    "SOURCES",
    "SOURCE_DIGITS",
    "STAGING_PREFIX",
    "TARGET_MODELS_METADATA",
    "USED_BY_METADATA",
    "ArtifactObject",
    "CatalogueObject",
    "FleetObject",
    "archive_key",
    "archive_prefix",
    "artifact_prefix",
    "build_inputs_prefix",
    "build_outputs_prefix",
    "build_prefix",
    "build_state_key",
    "catalogue_key",
    "catalogue_prefix",
    "deletion_key",
    "execution_prefix",
    "files_prefix",
    "fleet_prefix",
    "golden_upload_key",
    "index_key",
    "kept_golden_key",
    "kept_sources_key",
    "lock_key",
    "manifest_key",
    "parse_artifact_object",
    "parse_catalogue_object",
    "parse_fleet_object",
    "parse_lock_key",
    "pass_key",
    "publish_prefix",
    "publishing_failures_prefix",
    "publishing_prefix",
    "rehearsals_prefix",
    "request_key",
    "target_model",
    "target_model_pattern",
    "upload_key",
    "uploaded_build_key",
    "uploaded_rehearsal_key",
    "uploads_prefix",
]

ASSET_PREFIX = "triton-"
"""The prefix of the names that the store's handler can read in the bucket of the CDK's bootstrap."""

ARTIFACTS_PREFIX = "artifacts/"
"""The prefix of committed artifacts."""

FLEETS_PREFIX = "fleets/"
"""The prefix of the archives that multi-model endpoints serve."""

CATALOGUE_PREFIX = "catalogue/"
"""The prefix of the documents of published ensembles, which no model reads."""

SERVED_PREFIXES = (ARTIFACTS_PREFIX, FLEETS_PREFIX)
"""The prefixes of everything that models read."""

DELETIONS_PREFIX = "deletions/"
"""The prefix of the records of deletions, which do not expire."""

STAGING_PREFIX = "staging/"
"""The prefix of what builds read and write, and of their locks. All of it expires."""

PUBLISH_PREFIX = f"{STAGING_PREFIX}publish/"
"""The prefix of the requests and archives of callers of publishers; see `publish_prefix`."""

PUBLISHING_PREFIX = f"{STAGING_PREFIX}publishing/"
"""The prefix of what the state machines of publishers write; see `publishing_prefix`."""

USED_BY_METADATA = "cdk-triton:UsedBy"
"""The key in the metadata of a store's bucket, in its template, of the names of the app's stacks that use the store."""

ARTIFACT_KEY_METADATA = "artifact-key"
"""The key in the metadata of an object, in S3, of the artifact key that the object belongs to."""

TARGET_MODELS_METADATA = "cdk-triton:TargetModels"
"""The key in the metadata of a custom resource, in its template, of the target model of each ensemble."""

LOCKS_PREFIX = f"{STAGING_PREFIX}locks/"
"""The prefix of the locks of builds and rehearsals."""

ARCHIVE, FILES, SOURCES, MANIFEST, INDEX = "model.tar.gz", "files/", "sources.tar.gz", "manifest.json", "index.json"
REHEARSALS = "rehearsals/"
"""The names below an artifact's prefix, and that of the index below a multi-model endpoint's prefix."""

SOURCE_DIGITS = 10
"""Digits of the source key in a target model's name. Two versions of an ensemble collide with a chance of 10^-12."""

MAX_NAME_LENGTH = 200
"""Leaves room for the rest of a target model's name and of a URL of 1024 characters."""

NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}")
"""The name of an ensemble, or of a repository's directory."""

_KEY = r"(?P<key>[0-9a-f]{64})"
_PLAIN = "|".join(map(re.escape, (ARCHIVE, SOURCES, MANIFEST)))
_ARTIFACT_FILE = rf"(?P<file>{_PLAIN}|{FILES}.+|{REHEARSALS}[0-9a-f]{{64}}\.(?:json|zip))"
_ARTIFACT = re.compile(rf"{ARTIFACTS_PREFIX}(?P<repository>[^/]+)/{_KEY}/{_ARTIFACT_FILE}", re.DOTALL)
_FLEET = re.compile(rf"{FLEETS_PREFIX}(?P<fleet>[^/]+)/(?P<platform>[^/]+)/(?P<file>[^/]+)")
_CATALOGUE = re.compile(rf"{CATALOGUE_PREFIX}(?P<fleet>[^/]+)/(?P<platform>[^/]+)/(?P<ensemble>[^/]+)\.json")
_LOCK = re.compile(rf"{LOCKS_PREFIX}{_KEY}\.json")


class ArtifactObject(NamedTuple):
    """An object of an artifact.

    Attributes:
        repository: the name of the repository's directory.
        key: the artifact key, 64 hexadecimal digits.
        file: `ARCHIVE`, `SOURCES`, `MANIFEST`, `FILES` and the path of a file that is served uncompressed, or
            `REHEARSALS` and the name of a pass or of its golden requests.
    """

    repository: str
    key: str
    file: str


class FleetObject(NamedTuple):
    """An object that belongs to a `TritonMultiModel`.

    Attributes:
        fleet: the name of the `TritonMultiModel`.
        platform: the platform's label.
        file: a target model, or `INDEX`.
    """

    fleet: str
    platform: str
    file: str


class CatalogueObject(NamedTuple):
    """The document of a published ensemble.

    Attributes:
        fleet: the name of the `TritonMultiModel`.
        platform: the platform's label.
        ensemble: the ensemble.
    """

    fleet: str
    platform: str
    ensemble: str


def archive_prefix(repository: str) -> str:
    """The prefix of all archives of a repository."""
    return f"{ARTIFACTS_PREFIX}{repository}/"


def artifact_prefix(repository: str, artifact_key: str) -> str:
    """The prefix of one artifact."""
    return f"{archive_prefix(repository)}{artifact_key}/"


def archive_key(repository: str, artifact_key: str) -> str:
    """The object key of an archive."""
    return f"{artifact_prefix(repository, artifact_key)}{ARCHIVE}"


def files_prefix(repository: str, artifact_key: str) -> str:
    """The prefix of the files of a repository that is served uncompressed, before their paths in it."""
    return f"{artifact_prefix(repository, artifact_key)}{FILES}"


def manifest_key(repository: str, artifact_key: str) -> str:
    """The object key of the manifest that commits an archive."""
    return f"{artifact_prefix(repository, artifact_key)}{MANIFEST}"


def kept_sources_key(repository: str, artifact_key: str) -> str:
    """The object key of the sources of an archive whose build a publisher ordered."""
    return f"{artifact_prefix(repository, artifact_key)}{SOURCES}"


def rehearsals_prefix(repository: str, artifact_key: str) -> str:
    """The prefix of the passes of an archive: the rehearsals that it has passed."""
    return f"{artifact_prefix(repository, artifact_key)}{REHEARSALS}"


def pass_key(repository: str, artifact_key: str, rehearsal_key: str) -> str:
    """The object key of the pass of a rehearsal; see `keys.rehearsal_key`."""
    return f"{rehearsals_prefix(repository, artifact_key)}{rehearsal_key}.json"


def kept_golden_key(repository: str, artifact_key: str, rehearsal_key: str) -> str:
    """The object key of the golden requests of a published archive, which a publication for another platform needs."""
    return f"{rehearsals_prefix(repository, artifact_key)}{rehearsal_key}.zip"


def parse_artifact_object(object_key: str) -> ArtifactObject | None:
    """The object of an artifact that a key names; None for any other key."""
    found = _ARTIFACT.fullmatch(object_key)
    return found and ArtifactObject(**found.groupdict())


def fleet_prefix(fleet: str, platform: str = "") -> str:
    """The prefix that a multi-model endpoint serves from; without a platform, the prefix for all platforms."""
    return f"{FLEETS_PREFIX}{fleet}/{platform}/" if platform else f"{FLEETS_PREFIX}{fleet}/"


def index_key(fleet: str, platform: str) -> str:
    """The object key of the index of a `TritonMultiModel`."""
    return f"{fleet_prefix(fleet, platform)}{INDEX}"


def parse_fleet_object(object_key: str) -> FleetObject | None:
    """The object of a `TritonMultiModel` that a key names; None for any other key."""
    found = _FLEET.fullmatch(object_key)
    return found and FleetObject(**found.groupdict())


def catalogue_prefix(fleet: str, platform: str = "") -> str:
    """The prefix of the catalogue of a `TritonMultiModel`; without a platform, the prefix for all platforms."""
    return f"{CATALOGUE_PREFIX}{fleet}/{platform}/" if platform else f"{CATALOGUE_PREFIX}{fleet}/"


def catalogue_key(fleet: str, platform: str, ensemble: str) -> str:
    """The object key of the document of a published ensemble."""
    return f"{catalogue_prefix(fleet, platform)}{ensemble}.json"


def parse_catalogue_object(object_key: str) -> CatalogueObject | None:
    """The published ensemble whose document a key names; None for any other key."""
    found = _CATALOGUE.fullmatch(object_key)
    return found and CatalogueObject(**found.groupdict())


def publish_prefix(fleet: str, caller: str = "") -> str:
    """The prefix of the requests and archives of a publisher's callers, each publication in a directory of its own.

    Args:
        fleet: the name of the `TritonMultiModel` in the store.
        caller: its `aws:userid`; "" for the requests of all callers.
    """
    prefix = f"{PUBLISH_PREFIX}{fleet}/"
    return f"{prefix}{caller}/" if caller else prefix


def uploads_prefix(fleet: str, caller: str) -> str:
    """The prefix of the archives and golden requests that a caller has uploaded, which all its publications share."""
    return f"{publish_prefix(fleet, caller)}archives/"


def upload_key(fleet: str, caller: str, artifact_key: str) -> str:
    """The object key of an uploaded archive, or of the sources of one that is built."""
    return f"{uploads_prefix(fleet, caller)}{artifact_key}.tar.gz"


def request_key(fleet: str, publication: str) -> str:
    """The object key of a request.

    Args:
        fleet: the name of the `TritonMultiModel` in the store.
        publication: the caller, a slash, and the id of the publication.
    """
    return f"{publish_prefix(fleet)}{publication}/request.json"


def uploaded_build_key(fleet: str, publication: str, artifact_key: str) -> str:
    """The object key of the build of an archive; the arguments are those of `request_key`."""
    return f"{publish_prefix(fleet)}{publication}/{artifact_key}.json"


def uploaded_rehearsal_key(fleet: str, publication: str, rehearsal_key: str) -> str:
    """The object key of a rehearsal; `fleet` and `publication` are those of `request_key`."""
    return f"{publish_prefix(fleet)}{publication}/{rehearsal_key}.rehearsal.json"


def golden_upload_key(fleet: str, caller: str, golden: str) -> str:
    """The object key of an uploaded ZIP file of golden requests, which its SHA-256 names."""
    return f"{uploads_prefix(fleet, caller)}{golden}.zip"


def publishing_prefix(fleet: str, platform: str) -> str:
    """The prefix of what the state machine of a publisher writes."""
    return f"{PUBLISHING_PREFIX}{fleet}/{platform}/"


def execution_prefix(fleet: str, platform: str, execution: str) -> str:
    """The prefix of the items and builds of an execution.

    Args:
        fleet: the name of the `TritonMultiModel` in the store.
        platform: the platform's label.
        execution: the ARN of the execution, whose end names the machine and the execution.
    """
    return f"{publishing_prefix(fleet, platform)}executions/{_names(execution)}/"


def publishing_failures_prefix(fleet: str, platform: str, execution: str = "") -> str:
    """The prefix of the reasons why ensembles were not changed; without an execution, the prefix for all executions."""
    prefix = f"{publishing_prefix(fleet, platform)}failures/"
    return f"{prefix}{_names(execution)}/" if execution else prefix


def _names(execution: str) -> str:
    return "/".join(execution.split(":")[-2:])


def target_model(ensemble: str, source_key: str) -> str:
    """The name that a caller sends as `TargetModel`."""
    return f"{ensemble}-{source_key[:SOURCE_DIGITS]}.tar.gz"


def target_model_pattern(ensemble: str) -> str:
    """The pattern, in IAM's `StringLike`, of every version of an ensemble and of nothing else.

    `?` stands for exactly one character, so that `text-??????????.tar.gz` does not match a version of `text-large`.
    """
    return target_model(ensemble, "?" * SOURCE_DIGITS)


def deletion_key(time: datetime, digits: str) -> str:
    """The object key of the record of a deletion; keys sort by time, which is in UTC."""
    return f"{DELETIONS_PREFIX}{time:%Y-%m-%dT%H-%M-%SZ}-{digits}.json"


def build_prefix(build: str) -> str:
    """The prefix of one build."""
    return f"{STAGING_PREFIX}{build}/"


def build_inputs_prefix(build: str) -> str:
    """The prefix of the inputs of a build."""
    return f"{build_prefix(build)}in/"


def build_outputs_prefix(build: str) -> str:
    """The prefix of the outputs of a build."""
    return f"{build_prefix(build)}out/"


def build_state_key(build: str) -> str:
    """The object key of a build's state."""
    return f"{build_prefix(build)}state.json"


def lock_key(key: str) -> str:
    """The object key of the lock of an artifact key or of a rehearsal key."""
    return f"{LOCKS_PREFIX}{key}.json"


def parse_lock_key(object_key: str) -> str | None:
    """The artifact key or rehearsal key whose lock an object key names; None for any other key."""
    found = _LOCK.fullmatch(object_key)
    return found and found["key"]
