"""`rehearsal.json`: what to rehearse, as `cdk_triton.rehearsal` writes it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Mapping, NamedTuple, TypeVar

from ..files import is_safe_path

__all__ = ["Budgets", "RehearsalDocument", "RequestEntry", "document_of", "read_document"]

_SCHEMA = 1
_MODES = ("single", "multi")
_MOST_LOAD_SECONDS = 3600.0  # SageMaker's limit for ContainerStartupHealthCheckTimeoutInSeconds
_MOST_CONCURRENCY = 64  # `cdk_triton.triton.rehearsal`; each takes a thread
_MOST = 1e300  # finite in all that is computed with it

_Value = TypeVar("_Value")


class RequestEntry(NamedTuple):
    """A golden request in the document.

    Attributes:
        name: how messages call it.
        body: the file of its body.
        content_type: the content type of the body.
        comparison: how its answer is compared; see `comparison`.
        expected: the file of the expected answer, a body as the server writes it; None without one.
        expected_type: the content type of the expected answer.
        private: whether its text stays out of messages.
    """

    name: str
    body: Path
    content_type: str
    comparison: Mapping[str, Any]
    expected: Path | None
    expected_type: str
    private: bool


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
    requests: list[RequestEntry]
    keep_answers: bool
    budgets: Budgets


def read_document(folder: Path) -> RehearsalDocument:
    """Read `rehearsal.json` of the input folder.

    Raises:
        ValueError: it is missing, damaged, or of another version of the library.
    """
    try:
        found = json.loads((folder / "rehearsal.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(error) from error
    return document_of(found, folder)


def document_of(found: Mapping[str, Any], folder: Path) -> RehearsalDocument:
    """The document in JSON, whose files are in a folder.

    Somebody who publishes may have written it by hand, so each value is checked.

    Raises:
        ValueError: it is damaged, or of another version of the library.
    """
    try:
        if found["schema"] != _SCHEMA:
            raise ValueError(f"it has the schema {_shown(found['schema'])}, but this program reads {_SCHEMA}")
        if found["mode"] not in _MODES:
            raise ValueError(f"its mode is {_shown(found['mode'])}")
        requests = [_numbered(folder, *each) for each in enumerate(_of_type(list, found, "requests"), start=1)]
        bodies = [body for each in requests for body in (each.body, each.expected) if body is not None]
        if len(set(bodies)) < len(bodies):
            raise ValueError("two of its requests or expected answers have the same file")
        return RehearsalDocument(
            repository=_text(found, "repository"),
            mode=found["mode"],
            environment=_environment(_of_type(dict, found, "environment")),
            load_timeout_seconds=_number(found, "load_timeout_seconds", most=_MOST_LOAD_SECONDS),
            requests=requests,
            keep_answers=_of_type(bool, found, "keep_answers"),
            budgets=_budgets(found.get("budgets", {})),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> ValueError:
    reason = _reason(error)
    return ValueError(f"rehearsal.json cannot be used ({reason}): write it again, with one version of cdk-triton")


def _reason(error: Exception) -> str:
    """A KeyError has only the missing name."""
    return f"it lacks {_shown(error.args[0])}" if isinstance(error, KeyError) else str(error)


def _shown(value: object) -> str:
    return f"{value!r:.100}"


def _of_type(kind: type[_Value], found: Mapping[str, Any], name: str) -> _Value:
    value = found[name]
    if type(value) is not kind:
        raise ValueError(f"{name} is {_shown(value)}")
    return value


def _text(found: Mapping[str, Any], name: str) -> str:
    text = _of_type(str, found, name)
    text.encode("utf-8")  # JSON can have half of a character
    return text


def _number(
    found: Mapping[str, Any], name: str, *, least: float = 0.0, most: float = math.inf, is_whole: bool = False
) -> float:
    """A finite number within its limits."""
    value = found[name]
    if type(value) not in ((int,) if is_whole else (int, float)) or not least <= value <= min(most, _MOST):
        raise ValueError(f"{name} is {_shown(value)}")
    return value if is_whole else float(value)


def _environment(found: Mapping[str, Any]) -> dict[str, str]:
    for name in found:
        name.encode("utf-8")
        if not name or "=" in name or "\0" in f"{name}{_text(found, name)}":
            raise ValueError(f"the variable {_shown(name)} cannot be one of a process")
    return dict(found)


def _budgets(found: Mapping[str, Any]) -> Budgets:
    unknown = sorted(set(found) - set(Budgets._fields))
    if unknown:
        raise ValueError(f"its budgets have {_shown(unknown[0])}")

    def limit(name: str) -> float | None:
        return None if found.get(name) is None else _number(found, name)

    concurrency = _number({"concurrency": 1, **found}, "concurrency", least=1, most=_MOST_CONCURRENCY, is_whole=True)
    return Budgets(limit("load_seconds"), limit("gpu_memory_mib"), limit("p99_milliseconds"), int(concurrency))


def _numbered(folder: Path, number: int, row: Mapping[str, Any]) -> RequestEntry:
    """A request, whose faults name it."""
    if not isinstance(row, dict):
        raise ValueError(f"request {number} is {_shown(row)}")
    try:
        return _request(folder, row)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        where = f"request {number}, {_shown(row['name'])}" if "name" in row else f"request {number}"
        raise ValueError(f"{where}: {_reason(error)}") from error


def _request(folder: Path, row: Mapping[str, Any]) -> RequestEntry:
    expected = row["expected"]
    for name in (row["body"], *(() if expected is None else (expected,))):
        if not (isinstance(name, str) and is_safe_path(name)):
            raise ValueError(f"{_shown(name)} is not a relative path below the folder")
    comparison = _of_type(dict, row, "comparison")
    _check_comparison(comparison, has_expected=expected is not None)
    return RequestEntry(
        name=_text(row, "name"),
        body=folder / row["body"],
        content_type=_content_type(row, "content_type"),
        comparison=comparison,
        expected=None if expected is None else folder / expected,
        expected_type=_content_type(row, "expected_type"),
        private=row.get("private") is not False,
    )


def _content_type(row: Mapping[str, Any], name: str) -> str:
    """A value of a header."""
    text = _text(row, name)
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"{name} is {_shown(text)}")
    return text


def _check_comparison(comparison: Mapping[str, Any], *, has_expected: bool) -> None:
    how = _text(comparison, "how")
    if how == "label":
        _text(comparison, "label")
    elif how == "tolerance":
        _number(comparison, "absolute")
        _number(comparison, "relative")
    elif how == "cosine":
        _number(comparison, "least", least=-1.0, most=1.0)
    elif how not in ("any", "top1"):
        raise ValueError(f"the comparison is {_shown(how)}")
    if how in ("tolerance", "cosine", "top1") and not has_expected:
        raise ValueError(f"the comparison {how!r} has no expected answer")
