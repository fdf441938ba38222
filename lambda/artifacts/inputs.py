"""Copies the inputs of a build into its folder in the store's bucket, and writes `plan.json` last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from protocol.layout import build_inputs_prefix
from protocol.plan import BuildInput, BuildMachine

from .copying import copy_if_absent, reading
from .failure import ArtifactError, NotYetError
from .invocation import Invocation
from .products import Archive, Product
from .storage import LostRaceError, StoredObject
from .turn import RESERVE_MILLIS, TurnIsOverError

__all__ = ["copy_inputs", "copy_verified_input", "write_build_plan"]

SCHEMA = 1

SPARE_MINUTES = 5
"""The build program ends itself this long before the service ends the job: CodeBuild uploads nothing of a build that
it timed out."""

_KEYS = {"ensembles": "artifact_key", "rehearsals": "key"}
"""The sections of `plan.json`, and the field of their entries that has the key of the product."""

HASHED_HERE_BYTES = 2 * 1024**3
"""The size of an input that one invocation can read beside another one, at the 28 MB/s that docs/many_ensembles.md
assumes. The build program checks the hash of every input in any case. A check here saves the minutes that a machine
takes to start."""


def copy_inputs(
    build: str,
    builder: BuildMachine,
    products: Sequence[Product],
    together: Collection[Archive],
    assets: str,
    invocation: Invocation,
) -> dict[str, str]:
    """Copy the build program and the inputs of these products into the build's input folder, each once.

    Args:
        build: the build's id.
        builder: the machine that builds; it names the build program.
        products: what the job makes, one for each key.
        together: the archives that the job makes, under all names that an artifact key has.
        assets: the build plan's bucket.
        invocation: this invocation.

    Returns:
        By key, the reason why a product cannot be made: an input is missing, or its hash differs from the
        build plan.

    Raises:
        NotYetError: the time is up; the copied inputs are kept.
        ArtifactError: the build program is missing.
    """
    _copy_input(build, assets, invocation, builder.program)
    inputs = {product.key: product.inputs(together) for product in products}
    needed = {source.path: source for sources in inputs.values() for source in sources}
    results = invocation.each(partial(_try_copy, build, assets, invocation), needed.values())
    faults = dict(zip(needed, results, strict=True))
    found = {key: [faults[source.path] for source in sources] for key, sources in inputs.items()}
    return {key: "; ".join(filter(None, reasons)) for key, reasons in found.items() if any(reasons)}


def write_build_plan(
    build: str,
    builder: BuildMachine,
    products: Sequence[Product],
    together: Collection[Archive],
    invocation: Invocation,
) -> list[str]:
    """Write the build program's `plan.json` if it is absent; return the keys of the products in the stored one."""
    sections: dict[str, Any] = {
        name: [dict(each.entry(together)) for each in products if each.section == name] for name in _KEYS
    }
    document = {
        "schema": SCHEMA,
        "build": build,
        "deadline_seconds": (builder.timeout_minutes - SPARE_MINUTES) * 60,
        "platform": builder.platform,
        **sections,
    }
    key = f"{build_inputs_prefix(build)}plan.json"
    try:
        invocation.storage.write(key, json.dumps(document, indent=2).encode())
    except LostRaceError:
        found = invocation.storage.read(key)
        if found is None:
            raise NotYetError(f"s3://{invocation.storage.bucket}/{key} vanished") from None
        document = json.loads(found[0])
    return sorted(entry[field] for name, field in _KEYS.items() for entry in document[name])


def _try_copy(build: str, assets: str, invocation: Invocation, wanted: BuildInput) -> str | None:
    """Copy an input, and return why that failed, or None."""
    try:
        _copy_input(build, assets, invocation, wanted)
    except ArtifactError as error:
        return error.full
    return None


def _copy_input(build: str, assets: str, invocation: Invocation, wanted: BuildInput) -> None:
    copy_verified_input(wanted, f"{build_inputs_prefix(build)}{wanted.path}", assets, invocation)


def copy_verified_input(wanted: BuildInput, key: str, assets: str, invocation: Invocation) -> None:
    """Copy an input to `key`, if that is absent, and if the input has the SHA-256 that it should have.

    Raises:
        NotYetError: the time is up; the copied parts are kept.
        ArtifactError: the input is missing, or its hash differs.
    """
    storage, bucket = invocation.storage, assets if wanted.bucket is None else wanted.bucket
    existing = storage.head(key)
    if existing is not None:
        return
    source = storage.head(wanted.key, bucket=bucket, version=wanted.version)
    if source is None:
        raise ArtifactError(
            f"the input s3://{bucket}/{wanted.key}{_of(wanted)} of the build is missing; restore it, and deploy again"
        )

    def check(source: StoredObject, first: int, _: int) -> None:
        # An upload that holds the first part has passed this check. So no poll reads the input again.
        if first == 0 and wanted.sha256 is not None and source.size <= HASHED_HERE_BYTES:
            with reading(source, invocation.turn):
                _check_hash(source, wanted, invocation)

    copy_if_absent(source, key, {}, storage, invocation.turn, check)


def _check_hash(source: StoredObject, wanted: BuildInput, invocation: Invocation) -> None:
    found: Any = hashlib.sha256()
    try:
        for chunk in invocation.storage.chunks(source, 0, source.size):
            found.update(chunk)
            if invocation.remaining_millis() < RESERVE_MILLIS:
                raise TurnIsOverError(f"the time for reading {source} is up")
    except LostRaceError as error:
        raise NotYetError(f"{source} changed while it was read") from error
    if found.hexdigest() != wanted.sha256:
        raise ArtifactError(
            f"the SHA-256 of {source}{_of(wanted)} is {found.hexdigest()}, not {wanted.sha256}: restore the object, or "
            "correct the S3File of the recipe, and deploy again"
        )


def _of(wanted: BuildInput) -> str:
    return "" if wanted.version is None else f" (version {wanted.version})"
