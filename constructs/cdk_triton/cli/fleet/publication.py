"""A publication of this command: its items, and where it puts what the publisher's functions read.

The id of a publication is a digest of its items. So the same command, run again after any interruption, finds the
archives that it has uploaded and the execution that it has started.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.verdicts import Verdict
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol import layout
from cdk_triton.protocol.canonical import sha256_of_json
from cdk_triton.protocol.catalogue import Entry
from cdk_triton.protocol.publication import (
    MAX_ITEMS,
    MAX_REQUEST_BYTES,
    Item,
    UploadedBuild,
    UploadedRehearsal,
    request_text,
)

__all__ = ["Publication", "copy_item", "is_live", "publish_item", "write_builds", "write_request"]

_ID_DIGITS: Final = 40


@dataclass(frozen=True)
class Publication:
    """The ensembles that one execution of the publisher changes.

    Attributes:
        fleet: the name of the `TritonMultiModel` in the store.
        caller: the `aws:userid` of these credentials.
        items: the change of each ensemble.

    Raises:
        ConfigurationError: the state machine would reject so many items.
    """

    fleet: str
    caller: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        """Reject what the state machine would reject, before anything is uploaded."""
        count, size = len(self.items), len(self.body)
        if count > MAX_ITEMS or size > MAX_REQUEST_BYTES:
            raise ConfigurationError(
                f"{count:,} ensembles would change, in a request of {size:,} bytes, but one execution takes at most "
                f"{MAX_ITEMS:,} ensembles and {MAX_REQUEST_BYTES:,} bytes: publish them in parts, with several "
                "manifests"
            )

    @classmethod
    def of(cls, fleet: Fleet, items: Iterable[Item]) -> Publication:
        """A publication by these credentials.

        Raises:
            ConfigurationError: the state machine would reject so many items.
            ClientError, BotoCoreError: AWS rejected the call, or could not be reached.
        """
        return cls(fleet.description.fleet, fleet.caller, tuple(items))

    @cached_property
    def body(self) -> bytes:
        """The request."""
        return request_text(self.items)

    @cached_property
    def id(self) -> str:
        """Its id, which is unique among the publications of the caller."""
        return sha256_of_json([item.document() for item in self.items])[:_ID_DIGITS]

    @property
    def name(self) -> str:
        """Its name, which is unique among all publications."""
        return f"{self.caller}/{self.id}"

    @property
    def uploads(self) -> str:
        """The prefix of the archives, which all publications of a caller share, so an earlier upload is found."""
        return layout.uploads_prefix(self.fleet, self.caller)

    def upload_key(self, artifact_key: str) -> str:
        """The object key of an archive, or of the sources of one that is built."""
        return layout.upload_key(self.fleet, self.caller, artifact_key)


def is_live(verdict: Verdict, entry: Entry | None) -> bool:
    """Whether callers of an ensemble already get this archive, and it has passed this rehearsal."""
    if entry is None or entry.current != verdict.target_model:
        return False
    live = entry.versions[0]
    return live.artifact_key == verdict.artifact_key and verdict.rehearsal_key in ("", live.rehearsal)


def publish_item(verdict: Verdict) -> Item:
    """Makes an archive live."""
    return Item(
        verdict.listed.ensemble,
        "publish",
        verdict.repository,
        verdict.source_key,
        verdict.artifact_key,
        built=verdict.build is not None,
        rehearsal=verdict.rehearsal_key,
    )


def copy_item(verdict: Verdict, from_platform: str) -> Item:
    """Makes an ensemble live that is already published for another platform, with the same target model."""
    return replace(publish_item(verdict), from_platform=from_platform)


def write_builds(fleet: Fleet, publication: Publication, verdicts: Iterable[Verdict]) -> None:
    """Upload how archives are built and rehearsed.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    documents: dict[str, UploadedBuild | UploadedRehearsal] = {}
    for each in verdicts:
        place = publication.fleet, publication.name
        if each.build is not None:
            documents[layout.uploaded_build_key(*place, each.artifact_key)] = each.build
        if each.rehearsal is not None:
            documents[layout.uploaded_rehearsal_key(*place, each.rehearsal_key)] = each.rehearsal

    def write(key: str) -> None:
        fleet.aws.client("s3").put_object(Bucket=fleet.bucket, Key=key, Body=documents[key].text())

    list(in_parallel(write, list(documents)))


def write_request(fleet: Fleet, publication: Publication) -> None:
    """Upload the request, after its archives.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    key = layout.request_key(publication.fleet, publication.name)
    fleet.aws.client("s3").put_object(Bucket=fleet.bucket, Key=key, Body=publication.body)
