"""An entry of the catalogue: the live version of a published ensemble, and its earlier versions.

A publisher's functions write it, and the command and the callers of an endpoint read it. The versions are in the order
in which they went live, the newest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from .documents import Document, DocumentError, parse_object

__all__ = ["REPAIR", "Change", "Entry", "Version", "current_of"]

REPAIR: Final = "restore an earlier version of the object, or delete the object and publish the ensemble again"
"""What a person does about an entry that cannot be read."""


@dataclass(frozen=True)
class Change:
    """The author and the time of a change.

    Attributes:
        at: the time, in ISO 8601 and UTC.
        publisher: the `aws:userid` of the caller that wrote the request. Another caller may have started the execution.
        execution: the ARN of the execution that makes the change; AWS CloudTrail has the caller that started it.
    """

    at: str
    publisher: str
    execution: str

    def __post_init__(self) -> None:
        try:
            is_known = self.time.tzinfo is UTC
        except (ValueError, OverflowError):
            is_known = False
        if not is_known:
            raise ValueError(f"{self.at!r:.100} is not a time with its offset from UTC")

    @property
    def time(self) -> datetime:
        """The time, in UTC."""
        found = datetime.fromisoformat(self.at)
        return found if found.tzinfo is None else found.astimezone(UTC)


@dataclass(frozen=True)
class Version:
    """One version of an ensemble.

    Attributes:
        target_model: what callers send as `TargetModel`.
        artifact_key: the key of the served archive.
        source_key: the key of its sources, independent of the platform.
        repository: the name of the repository's directory.
        live: the change that last made it live.
        built: whether the archive was built, from sources that are kept beside it.
        rehearsal: the key of the rehearsal that the archive has passed; None without one.
    """

    target_model: str
    artifact_key: str
    source_key: str
    repository: str
    live: Change
    built: bool = False
    rehearsal: str | None = None


@dataclass(frozen=True)
class Entry(Document):
    """A published ensemble.

    Attributes:
        fleet: the name of the `TritonMultiModel` in the store.
        ensemble: its name.
        versions: the last versions, the most recently live one first; none for a forgotten ensemble.
        unpublished: the change that unpublished it; None while it is live.
        executions: the ARNs of the last executions that changed it, the newest first.
    """

    fleet: str
    ensemble: str
    versions: tuple[Version, ...] = ()
    unpublished: Change | None = None
    executions: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: bytes | str, fleet: str, ensemble: str) -> Self:
        """Read the entry of an ensemble.

        Raises:
            OtherVersionError: another version of the library wrote it.
            DocumentError: the text is not an entry of this ensemble.
        """
        entry = cls.parse(text)
        if (entry.fleet, entry.ensemble) != (fleet, ensemble):
            raise DocumentError(f"it is the entry of {entry.ensemble!r:.100} of {entry.fleet!r:.100}")
        if not entry.was_published:
            raise DocumentError("it lists neither a version nor the end of the publication")
        return entry

    @property
    def was_published(self) -> bool:
        """Whether the ensemble was live at any time."""
        return bool(self.versions) or self.unpublished is not None

    @property
    def current(self) -> str | None:
        """The target model of callers; None if the ensemble is not live."""
        return None if self.unpublished is not None or not self.versions else self.versions[0].target_model

    @property
    def changed(self) -> Change:
        """The last change of an ensemble that was published."""
        return self.unpublished or self.versions[0].live

    def has(self, execution: str) -> bool:
        """Whether an execution has made its change already."""
        return execution in self.executions

    def _document(self) -> dict[str, Any]:
        return {**super()._document(), "current": self.current}


def current_of(text: bytes) -> str | None:
    """The target model that callers of a published ensemble send; None if it is not live.

    All versions of the document have this field, so a client is not bound to one of them.

    Raises:
        DocumentError: the text is not an entry.
    """
    document = parse_object(text)
    current = document.get("current")
    if "current" in document and (current is None or isinstance(current, str)):
        return current
    raise DocumentError("it has no target model as its field 'current'")
