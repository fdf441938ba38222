"""Prepares the rehearsal of a deployment: its document, its key, and the ZIP file of its bodies.

A repository is prepared once for each way to serve it (`artifacts.prepare`), and so is its rehearsal. The golden files
are read again only after a change, except to write a ZIP file that the cloud assembly does not have.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.artifacts.program import REHEARSAL_VERSION
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.protocol import layout
from cdk_triton.protocol.keys import rehearsal_key
from cdk_triton.protocol.publication import UploadedRehearsal
from cdk_triton.rehearsal.document import rehearsal_document
from cdk_triton.rehearsal.requests import golden_files, golden_requests
from cdk_triton.rehearsal.variables import rehearsed_variables

if TYPE_CHECKING:
    from cdk_triton.artifacts.prepare import Prepared
    from cdk_triton.triton import ContainerEnvironment, Mode, ModelRepository

__all__ = ["PreparedRehearsal", "prepare_rehearsal", "published_rehearsal", "write_published"]

_QUESTION: Final = "rehearsal 3"
"""The number is raised when `_document` returns other members, so that older cached answers are not used."""

_SERVER_MINUTES: Final = 1.0
"""For a server to start, to answer some requests and to stop. A guess, not measured."""

_LOAD_BYTES_PER_MINUTE: Final = 60 * 100_000_000
"""A guess, not measured: four times as fast as the default start-up timeout allows."""

_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP archive


@dataclass(frozen=True)
class PreparedRehearsal:
    """A rehearsal of an archive.

    Attributes:
        prepared: the repository.
        document: what the build program reads about it.
        golden: the SHA-256 of the ZIP file of the requests and expected answers.
        gpus: how many GPUs the models need, because an `instance_group` names them.
    """

    prepared: Prepared
    document: Mapping[str, Any]
    golden: str
    gpus: int

    @property
    def key(self) -> str:
        """The rehearsal key; see `protocol.keys.rehearsal_key`."""
        platform = self.prepared.platform
        return rehearsal_key(
            artifact_key=self.prepared.keys.artifact,
            image=platform.image_identity,
            instance_type=platform.instance_type,
            golden=self.golden,
            document=self.document,
            program=REHEARSAL_VERSION,
        )

    @property
    def pass_key(self) -> str:
        """The object key of its pass in the store."""
        return layout.pass_key(self.prepared.repository.name, self.prepared.keys.artifact, self.key)

    @property
    def minutes(self) -> float:
        """Roughly how long it takes in a job that runs, in minutes."""
        return _SERVER_MINUTES + self.prepared.repository.size / _LOAD_BYTES_PER_MINUTE

    def write_golden(self, target: Path) -> None:
        """Write the ZIP file of the bodies.

        Raises:
            ArchiveError: a golden file has changed since the key was computed.
            ConfigurationError: a golden file cannot be used any more.
        """
        _pack(self.prepared.repository, self.document["mode"], self.document["environment"], target)
        if _sha256(target) != self.golden:
            raise self.prepared.changed("its golden requests were packed")


def prepare_rehearsal(prepared: Prepared, mode: Mode, environment: ContainerEnvironment) -> PreparedRehearsal | None:
    """Prepare the rehearsal of a repository; the answer comes from the cache if nothing has changed.

    Args:
        prepared: the repository.
        mode: how an endpoint serves it.
        environment: the container's settings.

    Returns:
        The rehearsal; None if the repository has no golden requests.

    Raises:
        ConfigurationError: a golden file cannot be used, or a variable of the container is a token.
    """
    repository = prepared.repository
    if repository.rehearsal is None:
        return None
    variables = rehearsed_variables(repository.rehearsal, mode, environment, prepared.entry_model)
    found = cached_answer(
        [repository],
        [_QUESTION, mode, sorted(variables.items()), repository.rehearsal],
        lambda: _answer(repository, mode, variables),
        files=golden_files(repository),
    )
    return PreparedRehearsal(prepared, found["document"], found["golden"], found["gpus"])


def published_rehearsal(repository: ModelRepository, environment: ContainerEnvironment) -> UploadedRehearsal | None:
    """The rehearsal of a repository that is published; None if it has no golden requests.

    Raises:
        ConfigurationError: as for `prepare_rehearsal`.
    """
    if repository.rehearsal is None:
        return None
    variables = rehearsed_variables(repository.rehearsal, "multi", environment, None)
    found = _answer(repository, "multi", variables)
    return UploadedRehearsal(found["golden"], found["document"])


def write_published(repository: ModelRepository, rehearsal: UploadedRehearsal, target: Path) -> bool:
    """Write the ZIP file of the bodies; False if a golden file has changed since `published_rehearsal`."""
    _pack(repository, "multi", rehearsal.document["environment"], target)
    return _sha256(target) == rehearsal.golden


def _answer(repository: ModelRepository, mode: Mode, variables: Mapping[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="cdk-triton-golden-") as directory:
        golden = Path(directory, "golden.zip")
        document = _pack(repository, mode, variables, golden)
        return {"document": document, "golden": _sha256(golden), "gpus": _gpus(repository)}


def _pack(repository: ModelRepository, mode: Mode, variables: Mapping[str, str], target: Path) -> dict[str, Any]:
    """Write the bodies as a ZIP file, whose bytes are the same on every machine: without times and compression."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:

        def write(name: str, body: bytes) -> None:
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system = 3  # Unix, whatever wrote it
            archive.writestr(entry, body)

        return rehearsal_document(repository, mode, variables, golden_requests(repository), write)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _gpus(repository: ModelRepository) -> int:
    """The server does not load a model with an `instance_group` on a GPU that the machine does not have."""
    groups = (group for model in repository.models if model.config for group in model.config.instance_group)
    return 1 + max((gpu for group in groups for gpu in group.gpus), default=0)
