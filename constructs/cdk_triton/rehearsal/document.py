"""`rehearsal.json`, which says what to rehearse, and the bodies that it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.sagemaker.timeouts import start_timeout_seconds

if TYPE_CHECKING:
    from cdk_triton.rehearsal.requests import Asked
    from cdk_triton.triton import Mode, ModelRepository
    from cdk_triton.triton.rehearsal import Rehearsal

__all__ = ["rehearsal_document", "write_folder"]

_SCHEMA: Final = 1

Write = Callable[[str, bytes], object]
"""Takes the name and the content of a body."""


def rehearsal_document(
    repository: ModelRepository,
    mode: Mode,
    environment: Mapping[str, str],
    requests: Iterable[Asked],
    write: Write,
    *,
    keep_answers: bool = False,
) -> dict[str, Any]:
    """What the build program reads about a rehearsal, as JSON values.

    Args:
        repository: the repository.
        mode: how an endpoint serves it.
        environment: the variables of the container.
        requests: the requests.
        write: gets the body of each request and of each expected answer.
        keep_answers: whether the rehearsal writes the answers into its output.

    Raises:
        ConfigurationError: a golden file cannot be used.
    """
    return {
        "schema": _SCHEMA,
        "repository": repository.name,
        "mode": mode,
        "environment": dict(environment),
        "own_variables": sorted({} if repository.rehearsal is None else repository.rehearsal.environment),
        "load_timeout_seconds": _load_timeout(repository),
        "budgets": _budgets(repository.rehearsal),
        "requests": [_row(number, each, write) for number, each in enumerate(requests)],
        "keep_answers": keep_answers,
    }


def write_folder(
    folder: Path,
    repository: ModelRepository,
    mode: Mode,
    environment: Mapping[str, str],
    requests: Iterable[Asked],
    *,
    keep_answers: bool = False,
) -> None:
    """Write `rehearsal.json` and the bodies into a folder that exists; see `rehearsal_document`."""

    def write(name: str, body: bytes) -> None:
        (folder / name).write_bytes(body)

    document = rehearsal_document(repository, mode, environment, requests, write, keep_answers=keep_answers)
    (folder / "rehearsal.json").write_text(json.dumps(document), encoding="utf-8")


def _load_timeout(repository: ModelRepository) -> float:
    given = None if repository.rehearsal is None else repository.rehearsal.load_timeout
    return float(start_timeout_seconds(repository.size)) if given is None else given


def _budgets(rehearsal: Rehearsal | None) -> dict[str, Any]:
    if rehearsal is None:
        return {}
    return {
        "load_seconds": rehearsal.max_load_seconds,
        "gpu_memory_mib": rehearsal.max_gpu_memory_mib,
        "p99_milliseconds": rehearsal.max_p99_milliseconds,
        "concurrency": rehearsal.concurrency,
    }


def _row(number: int, asked: Asked, write: Write) -> dict[str, Any]:
    write(f"request{number}", asked.request.body)
    if asked.expected is not None:
        write(f"expected{number}", asked.expected.body)
    return {
        "name": asked.name,
        "body": f"request{number}",
        "content_type": asked.request.content_type,
        "comparison": dict(asked.comparison),
        "expected": None if asked.expected is None else f"expected{number}",
        "expected_type": "" if asked.expected is None else asked.expected.content_type,
        **({} if asked.private else {"private": False}),
    }
