"""The published ensembles whose last change was made for a platform other than the one that the endpoint serves.

A deployment that changes the platform first compares the catalogues. Nothing stops a publication for the old platform
between this comparison and the moment when the endpoint serves the new platform. The new platform then lacks the
published version, so `fleet list` names the ensemble afterwards.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cdk_triton._wording import listed
from cdk_triton.cli.fleet.catalogue import Catalogue, platforms, read_catalogue
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.errors import StoreError
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Entry

__all__ = ["Elsewhere", "changed_elsewhere", "warnings"]


@dataclass(frozen=True)
class Elsewhere:
    """The catalogues of other platforms.

    Attributes:
        changed: ensemble → the platform of its last change, if callers get another version here.
        faults: the errors of the documents that could not be compared.
    """

    changed: Mapping[str, str]
    faults: tuple[StoreError, ...] = ()


def changed_elsewhere(fleet: Fleet, here: Catalogue) -> Elsewhere:
    """Compare the catalogue with those of other platforms.

    A platform for which the stack has a publisher is skipped, because the endpoint will be changed to that platform
    later. An ensemble that the stack names has archives but no entry in the catalogue.

    Args:
        fleet: the publisher of the platform that the endpoint serves.
        here: the catalogue of this platform.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    last, faults = dict[str, tuple[str, Entry]](), list[StoreError]()
    for platform in sorted(set(platforms(fleet)) - fleet.platforms):
        there = read_catalogue(fleet, platform)
        faults += there.faults.values()
        for name, entry in there.entries.items():
            if name not in last or last[name][1].changed.time < entry.changed.time:
                last[name] = platform, entry
    older = {
        name: platform
        for name, (platform, entry) in sorted(last.items())
        if name not in here.faults and _is_older(here.entries.get(name), entry)
    }
    if all(name in here.entries for name in older):
        return Elsewhere(older, tuple(faults))
    archives = [key.removeprefix(fleet.served) for key in fleet.keys(fleet.served)]
    of_stack = {
        name
        for name in older
        if name not in here.entries and fnmatch.filter(archives, layout.target_model_pattern(name))
    }
    changed = {name: platform for name, platform in older.items() if name not in of_stack}
    return Elsewhere(changed, tuple(faults))


def warnings(fleet: Fleet, found: Elsewhere) -> Iterator[str]:
    """The lines that `fleet list` prints for what it found."""
    for fault in found.faults:
        yield f"warning: {fault}"
    if found.changed:
        names = listed([f"{name!r} ({platform})" for name, platform in found.changed.items()])
        yield (
            f"warning: the endpoint does not have the last change of {names}, because the change was for another "
            "platform; make the change again with `cdk-triton fleet publish`, `rollback` or `unpublish` and "
            f"`--fleet {fleet.name}`"
        )


def _is_older(entry: Entry | None, other: Entry) -> bool:
    if entry is None:
        return other.current is not None
    return entry.current != other.current and entry.changed.time < other.changed.time
