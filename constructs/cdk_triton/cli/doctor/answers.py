"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Answer", "State"]


class State(StrEnum):
    """How it stands."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of one check.

    Attributes:
        subject: what was looked at, in one to three words.
        state: an error is what a deployment would fail for, a warning what some deployments fail for; what could not be
            looked at is unknown.
        found: what is the case.
        fix: what to do about it, in one sentence; empty only where there is nothing to do.
    """

    subject: str
    state: State
    found: str
    fix: str = ""
