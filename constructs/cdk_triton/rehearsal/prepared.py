"""A rehearsal of an archive: its document, its key, and the ZIP file of its bodies.

`artifacts.prepare` prepares it with the repository. The golden files are read again only after a change, except to
write a ZIP file that the cloud assembly does not have.
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
from cdk_triton.artifacts.reading import changed
from cdk_triton.protocol import layout
from cdk_triton.protocol.keys import rehearsal_key
from cdk_triton.protocol.publication import UploadedRehearsal
from cdk_triton.rehearsal.document import rehearsal_document
from cdk_triton.rehearsal.requests import golden_requests
from cdk_triton.rehearsal.variables import rehearsed_variables

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ContainerEnvironment, Mode, ModelRepository

__all__ = ["PreparedRehearsal", "packed_rehearsal", "published_rehearsal", "write_published"]

_SERVER_MINUTES: Final = 1.0
"""For a server to start, to answer some requests and to stop. A guess, not measured."""

_LOAD_BYTES_PER_MINUTE: Final = 60 * 100_000_000
"""A guess, not measured: four times as fast as the default start-up timeout allows."""

_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP archive


@dataclass(frozen=True)
class PreparedRehearsal:
    """A rehearsal of an archive.

    Attributes:
        repository: the repository.
        platform: the platform that serves it.
        artifact_key: the key of the archive.
        document: what the build program reads about it.
        golden: the SHA-256 of the ZIP file of the requests and expected answers.
    """

    repository: ModelRepository
    platform: ServingPlatform
    artifact_key: str
    document: Mapping[str, Any]
    golden: str

    @property
    def key(self) -> str:
        """The rehearsal key; see `protocol.keys.rehearsal_key`."""
        return rehearsal_key(
            artifact_key=self.artifact_key,
            image=self.platform.image_identity,
            instance_type=self.platform.instance_type,
            golden=self.golden,
            document=self.document,
            program=REHEARSAL_VERSION,
        )

    @property
    def pass_key(self) -> str:
        """The object key of its pass in the store."""
        return layout.pass_key(self.repository.name, self.artifact_key, self.key)

    @property
    def minutes(self) -> float:
        """Roughly how long it takes in a job that runs, in minutes."""
        return _SERVER_MINUTES + self.repository.size / _LOAD_BYTES_PER_MINUTE

    def write_golden(self, target: Path) -> None:
        """Write the ZIP file of the bodies.

        Raises:
            ArchiveError: a golden file has changed since the key was computed.
            ConfigurationError: a golden file cannot be used any more.
        """
        _pack(self.repository, self.document["mode"], self.document["environment"], target)
        if _sha256(target) != self.golden:
            raise changed(self.repository.root, "its golden requests were packed")


def packed_rehearsal(
    repository: ModelRepository, mode: Mode, environment: ContainerEnvironment, entry_model: str | None
) -> tuple[dict[str, Any], str] | None:
    """The document of the rehearsal of a repository and the SHA-256 of its bodies; None without golden requests.

    Args:
        repository: the repository.
        mode: how an endpoint serves it.
        environment: the container's settings.
        entry_model: the name of the repository's entry model; None if the repository leaves it open.

    Raises:
        ConfigurationError: a golden file cannot be used, or a variable of the container is a token.
    """
    if repository.rehearsal is None:
        return None
    variables = rehearsed_variables(repository.rehearsal, mode, environment, entry_model)
    with tempfile.TemporaryDirectory(prefix="cdk-triton-golden-") as directory:
        golden = Path(directory, "golden.zip")
        return _pack(repository, mode, variables, golden), _sha256(golden)


def published_rehearsal(repository: ModelRepository, environment: ContainerEnvironment) -> UploadedRehearsal | None:
    """The rehearsal of a repository that is published; None if it has no golden requests.

    Raises:
        ConfigurationError: as for `packed_rehearsal`.
    """
    packed = packed_rehearsal(repository, "multi", environment, None)
    return None if packed is None else UploadedRehearsal(document=packed[0], golden=packed[1])


def write_published(repository: ModelRepository, rehearsal: UploadedRehearsal, target: Path) -> bool:
    """Write the ZIP file of the bodies; False if a golden file has changed since `published_rehearsal`."""
    _pack(repository, "multi", rehearsal.document["environment"], target)
    return _sha256(target) == rehearsal.golden


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
