"""The request of a publication: `lambda/artifacts/publication.py` reads it.

The id of a publication is a digest of its items. So the same command, run again after any interruption, finds the
archives that it has uploaded and the execution that it has started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.artifacts.catalogue import CatalogueEntry
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.verdicts import Verdict
from cdk_triton.errors import ConfigurationError

__all__ = [
    "Item",
    "Publication",
    "copy_item",
    "forget_item",
    "is_live",
    "publish_item",
    "roll_back_item",
    "unpublish_item",
    "write_builds",
    "write_request",
]

_SCHEMA: Final = 1
_ID_DIGITS: Final = 40

_MOST_ITEMS: Final = 100_000
_MOST_BYTES: Final = 32 << 20
"""As the publisher's functions have them (`MAX_ITEMS` and `MAX_REQUEST_BYTES` of `lambda/artifacts/publication.py`)."""

Item = dict[str, str | bool]


@dataclass(frozen=True)
class Publication:
    """The work of an execution.

    Attributes:
        requests: the prefix of the caller's requests.
        items: one for each ensemble.

    Raises:
        ConfigurationError: the state machine would reject so many items.
    """

    requests: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        """Reject what the state machine would reject, before anything is uploaded."""
        count, size = len(self.items), len(self.body)
        if count > _MOST_ITEMS or size > _MOST_BYTES:
            raise ConfigurationError(
                f"{count:,} ensembles would change, in a request of {size:,} bytes, but one execution takes at most "
                f"{_MOST_ITEMS:,} ensembles and {_MOST_BYTES:,} bytes: publish them in parts, with several manifests"
            )

    @cached_property
    def body(self) -> bytes:
        """The request."""
        return json.dumps({"schema": _SCHEMA, "items": self.items}).encode()

    @cached_property
    def id(self) -> str:
        """Its name below the prefix of the requests."""
        text = json.dumps(self.items, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]

    @property
    def prefix(self) -> str:
        """The prefix of the request and the builds."""
        return f"{self.requests}{self.id}/"

    @property
    def uploads(self) -> str:
        """The prefix of the archives, which all publications of a caller share, so an earlier upload is found."""
        return f"{self.requests}archives/"

    def upload_key(self, artifact_key: str) -> str:
        """The object key of an archive, or of the sources of one that is built."""
        return f"{self.uploads}{artifact_key}.tar.gz"

    def build_key(self, artifact_key: str) -> str:
        """The object key of the build of an archive."""
        return f"{self.prefix}{artifact_key}.json"


def is_live(verdict: Verdict, entry: CatalogueEntry | None) -> bool:
    """Whether callers of an ensemble get this very archive already."""
    if entry is None or entry.current != verdict.target_model:
        return False
    keys = {version.target_model: version.artifact_key for version in entry.versions}
    return keys.get(entry.current) == verdict.artifact_key


def publish_item(verdict: Verdict) -> Item:
    """Makes an archive live."""
    keys: Item = {"source_key": verdict.source_key, "artifact_key": verdict.artifact_key}
    item: Item = {"ensemble": verdict.listed.ensemble, "action": "publish", "repository": verdict.repository, **keys}
    return item if verdict.build is None else {**item, "built": True}


def copy_item(verdict: Verdict, from_platform: str) -> Item:
    """Makes live what is published for another platform already, with the same target model."""
    return {**publish_item(verdict), "from_platform": from_platform}


def roll_back_item(ensemble: str, to: str | None) -> Item:
    """Makes an earlier version live."""
    item: Item = {"ensemble": ensemble, "action": "roll_back"}
    return item if to is None else {**item, "to": to}


def unpublish_item(ensemble: str) -> Item:
    """Takes an ensemble out of the catalogue, which keeps its versions."""
    return {"ensemble": ensemble, "action": "unpublish"}


def forget_item(ensemble: str) -> Item:
    """Takes an ensemble and its versions out of the catalogue."""
    return {"ensemble": ensemble, "action": "forget"}


def write_builds(fleet: Fleet, publication: Publication, verdicts: Iterable[Verdict]) -> None:
    """Upload how archives are built.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    builds = {publication.build_key(each.artifact_key): each.build for each in verdicts if each.build is not None}

    def write(key: str) -> None:
        fleet.aws.client("s3").put_object(Bucket=fleet.bucket, Key=key, Body=json.dumps(builds[key]).encode())

    list(in_parallel(write, list(builds)))


def write_request(fleet: Fleet, publication: Publication) -> None:
    """Upload the request, after its archives.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    key = f"{publication.prefix}request.json"
    fleet.aws.client("s3").put_object(Bucket=fleet.bucket, Key=key, Body=publication.body)
