"""The failures of a publication, which a publisher's functions write for the command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .documents import Document

__all__ = ["Failure", "failure_of_execution", "has_reasons_of_others"]

SHOWN_FAILURES = 5
"""The most failures in the message of an execution. The store has all of them."""

_OF_EXECUTION = re.compile(r"\d+ of \d+ ensembles could not be changed ")


@dataclass(frozen=True)
class Failure(Document):
    """Why an ensemble was not changed.

    Attributes:
        ensemble: its name.
        action: the requested change.
        reason: a sentence.
    """

    ensemble: str
    action: str
    reason: str


def failure_of_execution(reasons: Mapping[str, str], total: int, where: str) -> str:
    """The message of an execution that did not change all ensembles.

    Args:
        reasons: by ensemble.
        total: how many ensembles were to be changed.
        where: the URI of the prefix of the recorded reasons.
    """
    shown = "; ".join(f"{name!r}: {reason}" for name, reason in sorted(reasons.items())[:SHOWN_FAILURES])
    count = f"{len(reasons)} of {total} ensembles could not be changed"
    return f"{count} (recorded reasons are below {where}): {shown}"  # the reasons come last, because long ones are cut


def has_reasons_of_others(message: str) -> bool:
    """Whether a message is from `failure_of_execution`, and so contains the reasons of other ensembles."""
    return _OF_EXECUTION.match(message) is not None
