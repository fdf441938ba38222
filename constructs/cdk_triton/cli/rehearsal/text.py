"""How a rehearsal went, for a person and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cdk_triton._wording import listed
from cdk_triton.cli.terminal import bold, coloured, fold, width
from cdk_triton.triton.findings import printable

if TYPE_CHECKING:
    from cdk_triton.cli.rehearsal.running import Rehearsed
    from cdk_triton.triton import ModelRepository

__all__ = ["as_document", "as_lines", "not_runnable"]

_INDENT = "    "
_NOT_RUNNABLE = "not runnable here"


def as_lines(name: str, rehearsed: Rehearsed) -> Iterator[str]:
    """The lines for a person.

    Args:
        name: the repository.
        rehearsed: how it went.
    """
    from cdk_triton_local.triton.backends import is_lacking

    if rehearsed.reason is None:
        yield bold(fold(f"{name}: {_summary(rehearsed)}", width(), hanging=_INDENT))
    else:
        said = _NOT_RUNNABLE if is_lacking(rehearsed.reason) else "error"
        line = fold(printable(f"{name}: {said}: {rehearsed.reason}"), width(), hanging=_INDENT)
        yield line.replace(" error: ", f" {coloured('error', 'error')}: ", 1)
        if _is_random(rehearsed):
            yield fold(
                "the request was random, because the repository has no golden requests: list one in cdk-triton.toml",
                width(),
                indent=_INDENT,
                hanging=_INDENT,
            )
    for each in rehearsed.requests:
        if f"{each['name']}: {each['reason']}" == rehearsed.reason:
            continue  # it stands above
        yield fold(printable(_request(each)), width(), indent=_INDENT, hanging=_INDENT)
    if rehearsed.log is not None and rehearsed.reason is not None:
        yield f"{_INDENT}the log of the server: {rehearsed.log}"


def not_runnable(repository: ModelRepository) -> Iterator[str]:
    """Lines about the models whose backend the images have and this machine lacks, without a rehearsal.

    Without the extra `local`, the machine runs no model at all, and the result is empty.
    """
    from cdk_triton_local.triton.backends import lacking

    if find_spec("pytriton") is None:
        return
    found: dict[str, list[str]] = {}
    for model in repository.models:
        platform = "" if model.config is None else model.config.platform
        if reason := lacking(model.backend_name or "", platform):
            found.setdefault(reason, []).append(model.name)
    for reason, names in found.items():
        line = printable(f"{_NOT_RUNNABLE}: {listed(names)} ({reason})")
        yield fold(line, width(), indent=_INDENT, hanging=_INDENT)


def as_document(rehearsed: Rehearsed) -> dict[str, Any]:
    """The members for other programs."""
    return {
        "reason": rehearsed.reason,
        "load_seconds": rehearsed.load_seconds,
        "requests": list(rehearsed.requests),
        "stand_ins": list(rehearsed.stand_ins),
        "log": None if rehearsed.log is None else str(rehearsed.log),
    }


def _summary(rehearsed: Rehearsed) -> str:
    count = len(rehearsed.requests)
    answers = f"and answers {count} golden request{'s' * (count != 1)}"
    if _is_random(rehearsed):
        answers = "and answers a random request"
    if not count:
        answers = "and was asked nothing, because its models take no single random request"
    return (
        f"loads in {rehearsed.load_seconds:.1f} s {answers}, on this machine, with stand-ins for "
        f"{listed(rehearsed.stand_ins)}"
    )


def _is_random(rehearsed: Rehearsed) -> bool:
    from cdk_triton.cli.rehearsal.running import RANDOM  # a check does not wait for what a rehearsal imports

    return any(each["name"] == RANDOM for each in rehearsed.requests)


def _request(row: Mapping[str, Any]) -> str:
    if row["reason"] is not None:
        return f"{row['name']}: {row['reason']}"
    differences = row["largest_differences"].values()
    largest = f", largest difference {max(differences):.3g}" if differences else ""
    return f"{row['name']}: {row['seconds'] * 1000:.0f} ms{largest}"
