"""The index of a multi-model endpoint: which target models are current, and which were before.

Garbage collection needs it, because a multi-model endpoint's Model names a prefix only: free is what neither a Model
nor an index refers to. One generation back is kept, so that callers of the previous target models survive an update and
its rollback. The last writer wins; a late or repeated event leaves both generations listed.

An index has schema 1 until the first ensemble is published, and schema 2 from then on, for ever. Schema 2 means that
the catalogue lists further target models (`catalogue`). Its generations are lists, so that a garbage collection that
does not support the catalogue stops with an error, and so does an older store's handler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .catalogue import catalogue_key, catalogue_prefix, read_entry
from .failure import ArtifactError, NotYetError
from .plan import Fleet
from .storage import LostRaceError, Storage

__all__ = ["Index", "advance", "open_catalogue", "read_index", "write_index"]

SCHEMAS = (1, 2)
_WITH_CATALOGUE = 2
_ATTEMPTS = 5


@dataclass(frozen=True)
class Index:
    """An index.

    Attributes:
        fleet: the name of the `TritonMultiModel`.
        schema: 1, or 2 where the catalogue lists further target models.
        current: ensemble to target model, as the stack's last deployment has them.
        previous: the same of the deployment before.
    """

    fleet: str
    schema: int = 1
    current: dict[str, str] = field(default_factory=dict)
    previous: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        listed: Callable[[dict[str, str]], object] = _pairs if self.schema == _WITH_CATALOGUE else dict
        generations = {"current": listed(self.current), "previous": listed(self.previous)}
        return {"schema": self.schema, "fleet": self.fleet, **generations}


def advance(index: Index | None, fleet: Fleet) -> Index:
    """The index after `fleet` has become current; the same index if it is so already."""
    if index is None:
        return Index(fleet.name, current=fleet.target_models)
    if index.current == fleet.target_models:
        return index
    return Index(fleet.name, index.schema, fleet.target_models, index.current)


def write_index(fleet: Fleet, storage: Storage) -> None:
    """Make the plan's target models current in the index, by read, modify and conditional write.

    Raises:
        NotYetError: others keep writing it.
        ArtifactError: what is there is no index of this version of the library, or an ensemble of the plan was
            published too.
    """

    def change(index: Index | None) -> Index:
        if index is not None and index.schema == _WITH_CATALOGUE:
            _reject_published(fleet, storage)
        return advance(index, fleet)

    _update(fleet.index, change, storage)


def open_catalogue(name: str, key: str, storage: Storage) -> Index:
    """Give an index schema 2, if it does not have it, and return it; nothing is in the catalogue before.

    Args:
        name: of the `TritonMultiModel`, for a new index: one without an ensemble of its own has none yet.
        key: the index's object key.
        storage: the store's bucket.

    Raises:
        NotYetError: others keep writing it.
        ArtifactError: what is there is no index of this version of the library.
    """

    def change(index: Index | None) -> Index:
        found = Index(name) if index is None else index
        return Index(found.fleet, _WITH_CATALOGUE, found.current, found.previous)

    return _update(key, change, storage)


def read_index(key: str, storage: Storage) -> Index | None:
    """An index; None if no deployment has written it yet.

    Raises:
        ArtifactError: what is there is no index of this version of the library.
    """
    return _read(key, storage)[0]


def _read(key: str, storage: Storage) -> tuple[Index | None, str | None]:
    found = storage.read(key)
    return (None, None) if found is None else (_parse(found[0], f"s3://{storage.bucket}/{key}"), found[1])


def _update(key: str, change: Callable[[Index | None], Index], storage: Storage) -> Index:
    for _ in range(_ATTEMPTS):
        index, etag = _read(key, storage)
        wanted = change(index)
        if wanted == index:
            return wanted
        try:
            body = json.dumps(wanted.document(), indent=2, sort_keys=True).encode()
            storage.write(key, body, replacing=etag)
        except LostRaceError:
            continue
        return wanted
    raise NotYetError(f"other deployments keep writing s3://{storage.bucket}/{key}")


def _reject_published(fleet: Fleet, storage: Storage) -> None:
    """Callers of an ensemble that the stack names and that was published would get one of the two."""
    _, name, platform, _ = fleet.index.split("/")
    known = set(storage.keys(catalogue_prefix(name, platform)))
    for ensemble in fleet.target_models:
        if (
            catalogue_key(name, platform, ensemble) in known
            and read_entry(name, platform, ensemble, storage).current is not None
        ):
            raise ArtifactError(
                f"the stack has an ensemble {ensemble!r}, but an ensemble of this name is already published: rename "
                f"the stack's ensemble, or run `cdk-triton fleet unpublish {ensemble} --fleet STACK/FLEET` and deploy "
                "again"
            )


def _pairs(generation: dict[str, str]) -> list[dict[str, str]]:
    return [{"ensemble": name, "target_model": target} for name, target in sorted(generation.items())]


def _parse(text: bytes, name: str) -> Index:
    try:
        index = json.loads(text)
    except ValueError:
        index = None
    if not isinstance(index, dict) or not index.keys() >= {"schema", "current"}:
        raise ArtifactError(
            f"{name} is not an index of cdk-triton (a JSON object with 'schema' and 'current'); delete the object and "
            "deploy again"
        )
    schema = index["schema"]
    try:
        if schema not in SCHEMAS:
            raise TypeError(schema)
        current, previous = (_generation(schema, index.get(part, {})) for part in ("current", "previous"))
    except (LookupError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"{name} has schema {schema!r}, but this artifact store writes the schemas {SCHEMAS[0]} and {SCHEMAS[-1]}; "
            "update the artifact store's stack"
        ) from error
    return Index(str(index.get("fleet", "")), schema, current, previous)


def _generation(schema: int, part: Any) -> dict[str, str]:
    if schema == _WITH_CATALOGUE:
        return {each["ensemble"]: each["target_model"] for each in part}
    return dict(part.items())
