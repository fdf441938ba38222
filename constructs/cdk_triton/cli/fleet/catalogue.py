"""The published ensembles of a `TritonMultiModel`.

S3 lists a thousand documents in one request, with their ETags. A document whose ETag has been seen is read from the
cache, so a catalogue of thousands of ensembles that has hardly changed takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from botocore.exceptions import ClientError

from cdk_triton._file_cache import FileCache
from cdk_triton.cli.artifacts.aws import code_of, in_parallel
from cdk_triton.cli.artifacts.contents import parse_entry
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.errors import StoreError
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Entry

__all__ = ["Catalogue", "elsewhere", "names", "platforms", "read_catalogue", "read_entry"]

_KIND: Final = "catalogue"


def platforms(fleet: Fleet) -> list[str]:
    """The labels of the platforms that ensembles were published for, such as `25.09-a10g`.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    prefix = layout.catalogue_prefix(fleet.description.fleet)
    found = fleet.aws.pages(
        "s3", "list_objects_v2", "CommonPrefixes", Bucket=fleet.bucket, Prefix=prefix, Delimiter="/"
    )
    return [each["Prefix"].removeprefix(prefix).rstrip("/") for each in found]


@dataclass(frozen=True)
class Catalogue:
    """The published ensembles of a platform.

    Attributes:
        entries: every published ensemble by its name.
        faults: by ensemble, why its entry cannot be read, and the repair.
    """

    entries: Mapping[str, Entry]
    faults: Mapping[str, StoreError] = field(default_factory=dict)


def read_catalogue(fleet: Fleet, platform: str | None = None) -> Catalogue:
    """The published ensembles of a platform, by default the publisher's.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    label = fleet.description.platform.label if platform is None else platform
    prefix = layout.catalogue_prefix(fleet.description.fleet, label)
    pages = fleet.aws.pages("s3", "list_objects_v2", "Contents", Bucket=fleet.bucket, Prefix=prefix)
    etags = {each["Key"]: str(each["ETag"]) for each in pages if layout.parse_catalogue_object(each["Key"])}
    with FileCache() as file_cache:
        known = {key: file_cache.recall(_KIND, _name(fleet, key), etag) for key, etag in etags.items()}
    unknown = [key for key, text in known.items() if text is None]
    read = dict(zip(unknown, in_parallel(lambda key: _read(fleet, key), unknown), strict=True))
    with FileCache() as file_cache:
        for key, found in read.items():
            if found is not None:
                file_cache.keep(_KIND, _name(fleet, key), *found)
    texts = known | {key: None if found is None else found[1] for key, found in read.items()}
    entries, faults = dict[str, Entry](), dict[str, StoreError]()
    for key, text in texts.items():
        if text is not None:  # else gone meanwhile
            ensemble = key.removeprefix(prefix).removesuffix(".json")
            try:
                entries[ensemble] = parse_entry(text, fleet.bucket, key)
            except StoreError as fault:
                faults[ensemble] = fault
    return Catalogue(entries, faults)


def names(fleet: Fleet) -> list[str]:
    """The names of all published ensembles.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    return [found.ensemble for key in fleet.keys(fleet.catalogue) if (found := layout.parse_catalogue_object(key))]


def read_entry(fleet: Fleet, ensemble: str) -> Entry | None:
    """A published ensemble; None if it was never published.

    Raises:
        StoreError: the entry cannot be read.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    key = f"{fleet.catalogue}{ensemble}.json"
    found = _read(fleet, key)
    return None if found is None else parse_entry(found[1], fleet.bucket, key)


def elsewhere(fleet: Fleet, ensemble: str) -> list[str]:
    """The object keys of an ensemble in the catalogues of platforms for which there is no publisher any more.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    others = sorted(set(platforms(fleet)) - fleet.platforms)
    prefixes = [layout.catalogue_prefix(fleet.description.fleet, label) for label in others]
    keys = [f"{prefix}{ensemble}.json" for prefix in prefixes]
    return [key for key in keys if key in fleet.keys(key)]


def _name(fleet: Fleet, key: str) -> bytes:
    return f"{fleet.machine} {fleet.bucket}/{key}".encode()


def _read(fleet: Fleet, key: str) -> tuple[str, str] | None:
    """ETag and text; None if the document is not there."""
    try:
        found = fleet.aws.client("s3").get_object(Bucket=fleet.bucket, Key=key)
    except ClientError as error:
        if code_of(error) == "NoSuchKey":
            return None
        raise
    return str(found["ETag"]), found["Body"].read().decode(errors="replace")
