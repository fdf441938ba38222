"""Checks that all live ensembles are published for the next platform, before a `TritonMultiModel` changes to it.

The endpoint is about to serve another prefix, but callers send the same target models. So each ensemble that is live in
the catalogue of the previous platform must also be live in the new one, with the same target model. Otherwise the
deployment fails here, before anything else has changed.

Two documents are read for each ensemble, and a poll has 20 seconds. So each poll compares a part of the ensembles, and
Step Functions passes its progress to the next one.

A rollback restores the previous platform, whose archives still exist. So each poll first checks whether the stack is
rolling back, and compares nothing if it is. A store in a VPC without an endpoint for CloudFormation cannot check that,
and always compares.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from protocol.layout import catalogue_prefix, parse_catalogue_object, parse_fleet_object
from protocol.plan import ServedArchives

from .catalogue import read_entry
from .ensure import read_plan
from .failure import ArtifactError
from .invocation import Invocation
from .request import Request
from .rollback import rolls_back

__all__ = ["Compared", "compare"]

BATCH = 500
"""How many ensembles are compared between two checks of the time."""

SHOWN = 5
"""The most names in a message."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compared:
    """The progress of a comparison of two catalogues.

    Attributes:
        after: the object key of the last ensemble that is compared.
        missing: how many ensembles are not live for the new platform.
        names: the first of them.
        is_done: whether all are compared.
    """

    after: str = ""
    missing: int = 0
    names: tuple[str, ...] = ()
    is_done: bool = False

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> Compared | None:
        """Read it from the answer of the previous poll; None before the first one."""
        document = event.get("Polled", {}).get("Compared")
        return None if document is None else cls(**{**document, "names": tuple(document["names"])})

    def document(self) -> dict[str, Any]:
        """The progress as JSON."""
        return asdict(self)


def compare(request: Request, before: Compared | None, invocation: Invocation) -> Compared | None:
    """Compare the catalogues of the previous and the new platform, as far as time allows.

    Args:
        request: the request.
        before: the progress of earlier polls; None for the first one.
        invocation: this invocation.

    Returns:
        The progress; None if the platform does not change, nothing is published, or the stack is rolling back.

    Raises:
        ArtifactError: an ensemble is not published for the new platform.
    """
    old, new = request.published_before, request.published
    if old is None or (new is not None and old.platform == new.platform):
        return None
    storage, found = invocation.storage, Compared() if before is None else before
    served = read_plan(request, storage).fleet
    # Not `new.platform`, because the deployment may also remove the publisher.
    if served is None or (platform := _platform(served)) == old.platform:
        return None
    if found.is_done:
        return found
    if rolls_back(request.stack_id, invocation):
        return None

    def is_missing(ensemble: str) -> bool:
        current = read_entry(served.name, old.platform, ensemble, storage).current
        if current is None or ensemble in served.target_models:  # the stack's own deployment brings the latter
            return False
        return read_entry(served.name, platform, ensemble, storage).current != current

    prefix = catalogue_prefix(served.name, old.platform)
    keys = storage.keys(prefix, after=found.after)
    while part := list(islice(keys, BATCH)):
        if invocation.turn.is_over():
            return found
        ensembles = [place.ensemble for key in part if (place := parse_catalogue_object(key))]
        answers = zip(ensembles, invocation.each(is_missing, ensembles), strict=True)
        missing = [ensemble for ensemble, is_one in answers if is_one]
        found = Compared(part[-1], found.missing + len(missing), (*found.names, *missing)[:SHOWN])
    if found.missing:
        raise _missing(found, platform, None if new is None else new.command)
    return replace(found, is_done=True)


def _platform(served: ServedArchives) -> str:
    place = parse_fleet_object(served.index)
    assert place is not None  # as the synthesis names it
    return place.platform


def _missing(found: Compared, platform: str, command: str | None) -> ArtifactError:
    names = ", ".join(found.names)
    more = f" and {found.missing - len(found.names)} more" if found.missing > len(found.names) else ""
    count = "1 live ensemble is" if found.missing == 1 else f"{found.missing} live ensembles are"
    fix = (
        "first change the platform with the publisher, then remove the publisher in another deployment"
        if command is None
        else "first deploy the old platform with add_publisher(next_platform=...), then run "
        f"`{command}`, then deploy the change again"
    )
    return ArtifactError(  # the names come last, because long ones are cut
        f"{count} not published for the new platform {platform}; {fix} (not published: {names}{more})"
    )
