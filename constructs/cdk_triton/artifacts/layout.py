"""Where everything lies in the store's bucket, and what it is called there.

::

    artifacts/<repository>/<artifact key>/model.tar.gz        immutable
    artifacts/<repository>/<artifact key>/files/<path>        instead of the archive, for a model with uncompressed=True
    artifacts/<repository>/<artifact key>/manifest.json       written last: the commit
    fleets/<fleet>/<release>-<gpu>/<ensemble>-<source10>.tar.gz
    fleets/<fleet>/<release>-<gpu>/index.json                 current and previous target models
    staging/<build id>/in/                                    what a build reads; expires after 7 days
    staging/<build id>/out/                                   what it writes; expires too
    staging/locks/<artifact key>.json                         who builds an archive at the moment

An archive lies below the name of its repository's directory and not below an ensemble's, because it is the repository
that is packed: a fleet may serve one archive as several ensembles, under names of its own. Repositories whose
directories have the same name share the prefix. Their keys keep them apart, but each execution role may read them all,
so that distinct names are better.

The platform is in the prefix of a fleet and not in the names: a change of release or GPU is a new ModelDataUrl, and the
`TargetModel` of callers survives it. Names are flat below the prefix, because images from 26.03 on refuse a `/` in a
model's name (triton-inference-server/core 66f09f8).
"""

from __future__ import annotations

import re

from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker.limits import MAX_TARGET_MODEL_LENGTH

__all__ = [
    "ARTIFACTS_PREFIX",
    "SOURCE_DIGITS",
    "STAGING_PREFIX",
    "archive_key",
    "archive_prefix",
    "check_name",
    "files_prefix",
    "fleet_prefix",
    "index_key",
    "manifest_key",
    "target_model",
    "target_model_pattern",
]

SOURCE_DIGITS = 10
"""Digits of the source key in a target model's name: two versions of one ensemble meet with a chance of 1 in 10^12."""

ARTIFACTS_PREFIX = "artifacts/"
"""Below it lies what is committed."""

STAGING_PREFIX = "staging/"
"""Below it lies what builds read and write, and their locks. Everything else about it is the handler's business."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_NAME_LENGTH = 200  # leaves room for the rest of a target model's name and of a URL of 1024 characters


def check_name(name: str, what: str) -> str:
    """The name, if it may be part of an object key and of a `TargetModel`.

    Raises:
        ConfigurationError: it may not.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        raise ConfigurationError(
            f"{what} {name!r} cannot name an object of the artifact store: use up to {_MAX_NAME_LENGTH} letters, "
            "digits, '.', '_' and '-', with a letter or digit first"
        )
    return name


def archive_prefix(repository: str) -> str:
    """Below it lies every archive of a repository, whatever its key."""
    return f"{ARTIFACTS_PREFIX}{repository}/"


def archive_key(repository: str, artifact_key: str) -> str:
    """The object key of an archive."""
    return f"{archive_prefix(repository)}{artifact_key}/model.tar.gz"


def files_prefix(repository: str, artifact_key: str) -> str:
    """Below it lie the files of a repository that is served uncompressed, with the paths that they have in it."""
    return f"{archive_prefix(repository)}{artifact_key}/files/"


def manifest_key(repository: str, artifact_key: str) -> str:
    """The object key of the manifest that commits an archive."""
    return f"{archive_prefix(repository)}{artifact_key}/manifest.json"


def fleet_prefix(fleet: str, platform: str = "") -> str:
    """What a multi-model endpoint serves from; without a platform, what a fleet has served from at any time."""
    return f"fleets/{fleet}/{platform}/" if platform else f"fleets/{fleet}/"


def index_key(fleet: str, platform: str) -> str:
    """The object key of a fleet's index."""
    return f"{fleet_prefix(fleet, platform)}index.json"


def target_model(ensemble: str, source_key: str) -> str:
    """What a caller sends as `TargetModel`."""
    return f"{ensemble}-{source_key[:SOURCE_DIGITS]}.tar.gz"


def target_model_pattern(ensemble: str) -> str:
    """The pattern, in IAM's `StringLike`, of every version of an ensemble and of nothing else.

    `?` stands for exactly one character, so that `text-??????????.tar.gz` does not match a version of `text-large`.
    """
    return f"{ensemble}-{'?' * SOURCE_DIGITS}.tar.gz"


assert _MAX_NAME_LENGTH + SOURCE_DIGITS + len("-.tar.gz") <= MAX_TARGET_MODEL_LENGTH  # noqa: S101
