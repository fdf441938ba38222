"""How a rehearsal went, for a person and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cdk_triton._wording import listed
from cdk_triton.cli.rehearsal.running import RANDOM
from cdk_triton.cli.terminal import bold, coloured, fold, width
from cdk_triton.triton.findings import printable

if TYPE_CHECKING:
    from cdk_triton.cli.rehearsal.running import Rehearsed

__all__ = ["as_document", "as_lines"]

_INDENT = "    "


def as_lines(name: str, rehearsed: Rehearsed) -> Iterator[str]:
    """The lines for a person.

    Args:
        name: the repository.
        rehearsed: how it went.
    """
    from cdk_triton_local.triton.backends import LACKING

    if rehearsed.reason is None:
        yield bold(fold(f"{name}: {_summary(rehearsed)}", width(), hanging=_INDENT))
    else:
        # The images have a backend that this machine lacks: nothing is known about the repository.
        said = "not runnable here" if LACKING in rehearsed.reason else "error"
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
        answers = "and was asked nothing, because its models take no random request: list a golden one"
    return (
        f"loads in {rehearsed.load_seconds:.1f} s {answers}, on this machine, with stand-ins for "
        f"{listed(rehearsed.stand_ins)}"
    )


def _is_random(rehearsed: Rehearsed) -> bool:
    return any(each["name"] == RANDOM for each in rehearsed.requests)


def _request(row: Mapping[str, Any]) -> str:
    if row["reason"] is not None:
        return f"{row['name']}: {row['reason']}"
    differences = row["largest_differences"].values()
    largest = f", largest difference {max(differences):.3g}" if differences else ""
    return f"{row['name']}: {row['seconds'] * 1000:.0f} ms{largest}"
