"""`rehearsal.json`: what to rehearse, as `cdk_triton.rehearsal` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from ..files import is_safe_path

__all__ = ["Budgets", "GoldenRequest", "RehearsalDocument", "document_of", "read_document"]

_SCHEMA = 1
_MODES = ("single", "multi")


class GoldenRequest(NamedTuple):
    """One request.

    Attributes:
        name: how messages call it.
        body: the file of its body.
        content_type: the content type of the body.
        comparison: how its answer is compared; see `comparison`.
        expected: the file of the expected answer, a body as the server writes it; None without one.
        expected_type: the content type of the expected answer.
    """

    name: str
    body: Path
    content_type: str
    comparison: Mapping[str, Any]
    expected: Path | None
    expected_type: str


class Budgets(NamedTuple):
    """What a repository may use; None is no limit.

    Attributes:
        load_seconds: how long the models may take to load.
        gpu_memory_mib: how much memory of a GPU may be in use, in MiB.
        p99_milliseconds: the latency that 99 % of the answers keep.
        concurrency: how many requests are sent at once when the latency is measured.
    """

    load_seconds: float | None = None
    gpu_memory_mib: float | None = None
    p99_milliseconds: float | None = None
    concurrency: int = 1


class RehearsalDocument(NamedTuple):
    """What to rehearse.

    Attributes:
        repository: the name of the repository.
        mode: how the endpoint serves it: `single` or `multi`.
        environment: the variables of the container.
        load_timeout_seconds: how long the models may take until they are ready.
        requests: the golden requests.
        keep_answers: whether the answers are written into the output folder.
        budgets: what the repository may use.
    """

    repository: str
    mode: str
    environment: dict[str, str]
    load_timeout_seconds: float
    requests: list[GoldenRequest]
    keep_answers: bool
    budgets: Budgets


def read_document(folder: Path) -> RehearsalDocument:
    """Read `rehearsal.json` of the input folder.

    Raises:
        ValueError: it is missing, damaged, or of another version of the library.
    """
    try:
        found = json.loads((folder / "rehearsal.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unusable(error) from error
    return document_of(found, folder)


def document_of(found: Mapping[str, Any], folder: Path) -> RehearsalDocument:
    """The document in JSON, whose files are in a folder.

    Raises:
        ValueError: it is damaged, or of another version of the library.
    """
    try:
        if found["schema"] != _SCHEMA:
            raise ValueError(f"it has the schema {found['schema']}, but this program reads {_SCHEMA}")
        if found["mode"] not in _MODES:
            raise ValueError(f"its mode is {found['mode']!r}")
        return RehearsalDocument(
            repository=found["repository"],
            mode=found["mode"],
            environment=found["environment"],
            load_timeout_seconds=found["load_timeout_seconds"],
            requests=[_request(folder, each) for each in found["requests"]],
            keep_answers=found["keep_answers"],
            budgets=Budgets(**found.get("budgets", {})),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> ValueError:
    return ValueError(f"rehearsal.json cannot be used ({error}): write it again, with one version of cdk-triton")


def _request(folder: Path, row: Mapping[str, Any]) -> GoldenRequest:
    expected = row["expected"]
    for name in (row["body"], expected):
        if name is not None and not is_safe_path(name):
            raise ValueError(f"{name!r} is not a relative path below the folder")
    return GoldenRequest(
        name=row["name"],
        body=folder / row["body"],
        content_type=row["content_type"],
        comparison=row["comparison"],
        expected=None if expected is None else folder / expected,
        expected_type=row["expected_type"],
    )
