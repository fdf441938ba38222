"""The names of artifacts, computed from what determines them.

A key is the SHA-256 of a canonical JSON document (sorted, no spaces, ASCII). What takes part is every file that the
archive contains, by path and content, and for an artifact also what it is built for: the image, as `repository:tag` or
digest, and the GPU. What does not: registry, account and region, because the same image is served from everywhere;
times, owners, modes and order of files, because the archive has none of its own; and the archive's bytes, because
gzip's differ between processors.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from cdk_triton.artifacts.contents import archive_files
from cdk_triton.artifacts.digests import file_digests
from cdk_triton.artifacts.reading import Progress
from cdk_triton.sagemaker.tokens import refuse_token

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["BUILDER_VERSION", "artifact_key", "source_key"]

_SCHEMA_VERSION: Final = 1

BUILDER_VERSION: Final = 1
"""Raised by hand when the same inputs give another archive, and by nothing else: it renames every artifact.

A test holds the bytes of a small archive, so that a change of the writer cannot go by unnoticed.
"""

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def source_key(repository: ModelRepository, *, progress: Progress | None = None) -> str:
    """The key of what a repository is built from, whatever serves it: 64 hexadecimal digits.

    Args:
        repository: the repository; its files are read unless they were hashed before (`digests`).
        progress: is told about the bytes that have to be read.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
        ConfigurationError: a path contains a CDK token.
    """
    return _sha256_of_json(_source(repository, progress))


def artifact_key(repository: ModelRepository, platform: ServingPlatform, *, progress: Progress | None = None) -> str:
    """The key of a repository's archive for a platform: 64 hexadecimal digits.

    Raises:
        ArchiveError: a file is missing, cannot be read, or is written to at this moment.
        ConfigurationError: a path contains a CDK token.
    """
    target = {
        "image": platform.image_identity,
        "gpu": {"name": platform.gpu, "compute_capability": platform.compute_capability},
    }
    return _sha256_of_json(_source(repository, progress) | target)


def _source(repository: ModelRepository, progress: Progress | None) -> dict[str, object]:
    files = archive_files(repository)
    for file in files:
        refuse_token(file.path, "the path")
    digests = file_digests([file.source for file in files if file.source is not None], progress=progress)
    return {
        "schema": _SCHEMA_VERSION,
        "builder": BUILDER_VERSION,
        "files": {file.path: _EMPTY_SHA256 if file.source is None else digests[file.source] for file in files},
    }


def _sha256_of_json(document: dict[str, object]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
