"""The rehearsals that an artifact has passed: their figures, beside those of the version before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.artifacts.contents import StoredArtifact, read_text
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.rehearsal import RehearsalPass

__all__ = ["rehearsals_of"]


def rehearsals_of(store: Store, artifact: StoredArtifact, artifacts: Sequence[StoredArtifact]) -> list[dict[str, Any]]:
    """The figures of each pass of an artifact, the newest first.

    The first has the member `previous` with the figures of the version before, if that was rehearsed, too.

    Args:
        store: the store.
        artifact: the artifact.
        artifacts: those of the store, of which the version before is one.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    rows = _rows(store, artifact)
    before = max((each for each in artifacts if _precedes(each, artifact)), key=_stored, default=None)
    if rows and before is not None and (previous := _rows(store, before)):
        rows[0]["previous"] = {"artifact_key": before.key, **previous[0]}
    return rows


def _rows(store: Store, artifact: StoredArtifact) -> list[dict[str, Any]]:
    files = sorted(artifact.passes, key=lambda file: file.modified, reverse=True)
    texts = in_parallel(lambda file: read_text(store, file.key), files)
    found = []
    for text in texts:
        try:
            if text is not None:  # else deleted a moment ago
                found.append(dict(_figures(RehearsalPass.parse(text))))
        except DocumentError:  # of another version, for which no figure counts
            continue
    return found


def _stored(artifact: StoredArtifact) -> datetime:
    assert artifact.manifest is not None  # as `_precedes` wants it
    return artifact.manifest.modified


def _precedes(other: StoredArtifact, artifact: StoredArtifact) -> bool:
    """Whether it is an older version of the repository that was rehearsed."""
    if other.repository != artifact.repository or other.key == artifact.key or not other.passes:
        return False
    return other.manifest is not None and artifact.manifest is not None and _stored(other) < _stored(artifact)


def _figures(found: RehearsalPass) -> Iterator[tuple[str, Any]]:
    result = found.result
    yield "key", found.key
    yield "image", found.image
    yield "load_seconds", result.get("load_seconds")
    yield "gpu_memory_mib", _peak(result, "gpu")
    yield "host_memory_mib", _peak(result, "host")
    yield "shared_memory_mib", _peak(result, "shared")
    latency = result.get("latency") or {}
    for name in ("concurrency", "answers", "p50_milliseconds", "p90_milliseconds", "p99_milliseconds"):
        yield name, latency.get(name)
    yield "requests", len(result.get("requests", ()))
    server: Mapping[str, Any] = result.get("server") or {}
    yield "server", server.get("version")
    for name, values in (
        ("warnings", server.get("warnings")),
        ("stand_ins", result.get("stand_ins")),
        ("skipped", result.get("skipped")),
    ):
        if values:
            yield name, values
    yield "differs", result.get("differs", {})
    if found.promoted_from is not None:
        yield "promoted_from", found.promoted_from


def _peak(result: Mapping[str, Any], what: str) -> float | None:
    memory = (result.get("memory") or {}).get(what) or {}
    peak: float | None = memory.get("peak")
    return peak
