"""The index of a multi-model endpoint: which target models are current, and which were before.

Garbage collection needs it, because a multi-model endpoint's Model names a prefix only: free is what neither a Model
nor an index refers to. One generation back is kept, so that callers of the previous target models survive an update and
its rollback. The last writer wins; a late or repeated event leaves both generations listed.
"""

from __future__ import annotations

import json
from typing import Any

from .failure import ArtifactError, NotYetError
from .plan import Fleet
from .storage import LostRaceError, Storage

__all__ = ["advance", "write_index"]

SCHEMA = 1
_ATTEMPTS = 5


def advance(index: dict[str, Any] | None, fleet: Fleet) -> dict[str, Any]:
    """The index after `fleet` has become current; the same index if it is so already."""
    if index is not None and index["current"] == fleet.target_models:
        return index
    previous = {} if index is None else index["current"]
    return {"schema": SCHEMA, "fleet": fleet.name, "current": fleet.target_models, "previous": previous}


def write_index(fleet: Fleet, storage: Storage) -> None:
    """Make the plan's target models current in the index, by read, modify and conditional write.

    Raises:
        NotYetError: others keep writing it.
        ArtifactError: what is there is no index of this version of the library.
    """
    for _ in range(_ATTEMPTS):
        found = storage.read(fleet.index)
        index = None if found is None else _parse(found[0], f"s3://{storage.bucket}/{fleet.index}")
        wanted = advance(index, fleet)
        if wanted == index:
            return
        try:
            body = json.dumps(wanted, indent=2, sort_keys=True).encode()
            storage.write(fleet.index, body, replacing=None if found is None else found[1])
        except LostRaceError:
            continue
        return
    raise NotYetError(f"other deployments keep writing s3://{storage.bucket}/{fleet.index}")


def _parse(text: bytes, name: str) -> dict[str, Any]:
    try:
        index = json.loads(text)
    except ValueError:
        index = None
    if not isinstance(index, dict) or not index.keys() >= {"schema", "current"}:
        raise ArtifactError(
            f"{name} is not an index of cdk-triton, which is a JSON object with 'schema' and 'current'; delete it and "
            "deploy again"
        )
    schema, current = index["schema"], index["current"]
    if schema != SCHEMA or not isinstance(current, dict):
        raise ArtifactError(
            f"{name} has schema {schema!r} and this store writes {SCHEMA}; update the artifact store's stack"
        )
    return index
