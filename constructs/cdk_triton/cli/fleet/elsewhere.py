"""The published ensembles whose last change was made for another platform than the one that the endpoint serves.

A deployment that changes the platform first compares the catalogues. Somebody may publish for the old platform after
that, and before the endpoint serves the new one. Nothing stops the publication, and the new platform does not have it.
So `fleet list` names it afterwards.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping

from cdk_triton._wording import listed
from cdk_triton.artifacts import layout
from cdk_triton.cli.artifacts.catalogue import CatalogueEntry
from cdk_triton.cli.fleet.catalogue import platforms, read_catalogue
from cdk_triton.cli.fleet.place import Fleet

__all__ = ["changed_elsewhere", "warning"]


def changed_elsewhere(fleet: Fleet, here: Mapping[str, CatalogueEntry]) -> dict[str, str]:
    """The platform of the last change, by ensemble, where that is another one and callers get something else here.

    Another platform that has a publisher is not compared, because the endpoint does not serve it yet. An ensemble that
    the stack names has archives here and no entry.

    Args:
        fleet: the publisher of the platform that the endpoint serves.
        here: its catalogue.

    Raises:
        StoreError: a document of a catalogue cannot be read.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    last: dict[str, tuple[str, CatalogueEntry]] = {}
    for platform in sorted(set(platforms(fleet)) - fleet.platforms):
        for name, entry in read_catalogue(fleet, platform).items():
            if name not in last or last[name][1].changed.at < entry.changed.at:
                last[name] = platform, entry
    older = {name: platform for name, (platform, entry) in sorted(last.items()) if _is_older(here.get(name), entry)}
    if all(name in here for name in older):
        return older
    archives = [key.removeprefix(fleet.served) for key in fleet.keys(fleet.served)]
    of_stack = {
        name for name in older if name not in here and fnmatch.filter(archives, layout.target_model_pattern(name))
    }
    return {name: platform for name, platform in older.items() if name not in of_stack}


def warning(fleet: Fleet, found: Mapping[str, str]) -> Iterator[str]:
    """The line that `fleet list` prints if it found any."""
    if found:
        names = listed([f"{name} ({platform})" for name, platform in found.items()])
        yield (
            f"warning: the endpoint does not have the last change of {names}, because it was made for another "
            f"platform; make the change again with cdk-triton fleet publish, rollback or unpublish --fleet {fleet.name}"
        )


def _is_older(entry: CatalogueEntry | None, other: CatalogueEntry) -> bool:
    if entry is None:
        return other.current is not None
    return entry.current != other.current and entry.changed.at < other.changed.at
