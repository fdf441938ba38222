"""Copies the inputs of a build into its folder in the store's bucket, and writes `plan.json` last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from protocol.layout import build_inputs_prefix
from protocol.plan import BuildInput, BuildMachine, Commit

from .copying import copy_if_absent, reading
from .failure import ArtifactError, NotYetError
from .invocation import Invocation
from .storage import LostRaceError, StoredObject
from .turn import RESERVE_MILLIS, TurnIsOverError

__all__ = ["copy_inputs", "write_build_plan"]

SCHEMA = 1

SPARE_MINUTES = 5
"""The build program ends itself this long before the service ends the job: CodeBuild uploads nothing of a build that
it timed out."""

HASHED_HERE_BYTES = 2 * 1024**3
"""The size of an input that one invocation can read beside another one, at the 28 MB/s that docs/many_ensembles.md
assumes. The build program checks the hash of every input in any case. A check here saves the minutes that a machine
takes to start."""


def copy_inputs(
    build: str, builder: BuildMachine, commits: Sequence[Commit], assets: str, invocation: Invocation
) -> dict[str, str]:
    """Copy the build program and the inputs of these commits into the build's input folder, each once.

    Args:
        build: the build's id.
        builder: the machine that builds; it names the build program.
        commits: the archives to build.
        assets: the build plan's bucket.
        invocation: this invocation.

    Returns:
        By artifact key, the reason why an archive cannot be built: an input is missing, or its hash differs from the
        build plan.

    Raises:
        NotYetError: the time is up; the copied inputs are kept.
        ArtifactError: the build program is missing.
    """
    _copy_input(build, assets, invocation, builder.program)
    needed = {source.path: source for commit in commits for source in _inputs_of(commit)}
    results = invocation.each(partial(_try_copy, build, assets, invocation), needed.values())
    faults = dict(zip(needed, results, strict=True))
    found = {commit.artifact_key: [faults[source.path] for source in _inputs_of(commit)] for commit in commits}
    return {key: "; ".join(filter(None, reasons)) for key, reasons in found.items() if any(reasons)}


def write_build_plan(build: str, builder: BuildMachine, commits: Iterable[Commit], invocation: Invocation) -> list[str]:
    """Write the build program's `plan.json` if it is absent; return the keys in the stored one."""
    ensembles = [dict(commit.build.ensemble) for commit in commits if commit.build is not None]
    document = {
        "schema": SCHEMA,
        "build": build,
        "deadline_seconds": (builder.timeout_minutes - SPARE_MINUTES) * 60,
        "platform": builder.platform,
        "ensembles": ensembles,
    }
    key = f"{build_inputs_prefix(build)}plan.json"
    try:
        invocation.storage.write(key, json.dumps(document, indent=2).encode())
    except LostRaceError:
        found = invocation.storage.read(key)
        if found is None:
            raise NotYetError(f"s3://{invocation.storage.bucket}/{key} vanished") from None
        ensembles = json.loads(found[0])["ensembles"]
    return sorted(ensemble["artifact_key"] for ensemble in ensembles)


def _inputs_of(commit: Commit) -> tuple[BuildInput, ...]:
    return () if commit.build is None else commit.build.inputs


def _try_copy(build: str, assets: str, invocation: Invocation, wanted: BuildInput) -> str | None:
    """Copy an input, and return why that failed, or None."""
    try:
        _copy_input(build, assets, invocation, wanted)
    except ArtifactError as error:
        return error.full
    return None


def _copy_input(build: str, assets: str, invocation: Invocation, wanted: BuildInput) -> None:
    storage, key = invocation.storage, f"{build_inputs_prefix(build)}{wanted.path}"
    bucket = assets if wanted.bucket is None else wanted.bucket
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
            f"the SHA-256 of {source}{_of(wanted)} is {found.hexdigest()}, not the recipe's {wanted.sha256}: "
            "correct the recipe's S3File or restore the object, and deploy again"
        )


def _of(wanted: BuildInput) -> str:
    return "" if wanted.version is None else f" (version {wanted.version})"
