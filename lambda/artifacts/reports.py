"""The reports of a build: `build.json` of a finished ensemble, `failure.json` of a product that failed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protocol.documents import parse_json
from protocol.layout import build_outputs_prefix
from protocol.plan import Commit

from . import copying
from .storage import Storage, StoredObject, TooLargeError

__all__ = ["MAX_REPORT_BYTES", "BrokenBuildError", "BuildReport", "read_failure", "read_report", "was_not_started"]

SCHEMA = 1

MAX_REPORT_BYTES = 4 * 1024**2
"""The size of a report; the hashes of the 10,000 parts that an archive may have take 0.7 MB."""


class BrokenBuildError(Exception):
    """The files of a build differ from its own report; another build fixes that."""


@dataclass(frozen=True)
class BuildReport:
    """The report of a finished ensemble.

    Attributes:
        document: the whole report, which becomes part of the manifest.
        size: of the archive, in bytes.
        parts: the SHA-256 of each part of it, in parts of `copying.PART_BYTES`.
    """

    document: dict[str, Any]
    size: int
    parts: tuple[str, ...]

    def check_part(self, archive: StoredObject, first: int, size: int, storage: Storage) -> None:
        """Read a part of the archive, in bounded memory, and compare its hash.

        Raises:
            BrokenBuildError: the hash differs.
            LostRaceError: the archive has changed since it was described.
        """
        found = hashlib.sha256()
        for chunk in storage.chunks(archive, first, size):
            found.update(chunk)
        number = first // copying.PART_BYTES
        if found.hexdigest() != self.parts[number]:
            raise BrokenBuildError(
                f"part {number + 1} of {archive} has the SHA-256 {found.hexdigest()}, but build.json records "
                f"{self.parts[number]}"
            )


def read_report(build: str, commit: Commit, storage: Storage) -> BuildReport | None:
    """The report of an ensemble; None if the build has not finished it.

    Raises:
        BrokenBuildError: the document is not a report of this ensemble.
    """
    name = f"{build_outputs_prefix(build)}{commit.artifact_key}/build.json"
    try:
        found = storage.read(name, most=MAX_REPORT_BYTES)
        if found is None:
            return None
        document = parse_json(found[0])
        archive = document["archive"]
        report = BuildReport(document, int(archive["size"]), tuple(archive["parts"]))
        found_values = (document["schema"], document["artifact_key"], archive["part_bytes"], len(report.parts))
    except (TooLargeError, ValueError, LookupError, TypeError) as error:
        raise BrokenBuildError(f"{name} is not a report of cdk-triton's build program ({error!r})") from error
    wanted = (SCHEMA, commit.artifact_key, copying.PART_BYTES, -(-report.size // copying.PART_BYTES))
    if found_values != wanted:
        raise BrokenBuildError(f"{name} has schema, key, part size and number of parts {found_values}, not {wanted}")
    return report


def was_not_started(build: str, key: str, storage: Storage) -> bool:
    """Whether a build ended before it began with a product: its `failure.json` has `"started": false`."""
    try:
        found = storage.read(f"{build_outputs_prefix(build)}{key}/failure.json", most=MAX_REPORT_BYTES)
        return found is not None and parse_json(found[0])["started"] is False
    except (TooLargeError, ValueError, LookupError, TypeError):
        return False


def read_failure(build: str, key: str | None, storage: Storage) -> tuple[str, list[str]] | None:
    """Reason and last lines of a product that failed, or, with None, of a job that ended before any work."""
    folder = "" if key is None else f"{key}/"
    try:
        found = storage.read(f"{build_outputs_prefix(build)}{folder}failure.json", most=MAX_REPORT_BYTES)
        if found is None:
            return None
        document: Mapping[str, Any] = parse_json(found[0])
        return str(document["reason"]), [str(line) for line in document.get("log", [])]
    except (TooLargeError, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"the failure.json of the build cannot be read ({error!r})", []
